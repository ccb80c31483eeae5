#include <cstddef>

#include "iclflow/spectral/large_context.hpp"

namespace iclflow {

void LargeContext::hessian(const Eigen::VectorXd& state, Eigen::MatrixXd& matrix) const {
  const int size = coordinates_.size();
  const SpectralView<const double> x(state.data(), heads_, tasks_, size);
  const auto task = [this](int k) { return coordinates_.task[static_cast<std::size_t>(k)]; };
  const Matrix weighted = x.omega * multiplicity_.asDiagonal();
  const Matrix correlation = (weighted * x.omega.transpose()).array().exp();
  const Matrix noise = correlation.cwiseProduct(x.mu * noise_weight_.asDiagonal() * x.mu.transpose());
  Eigen::RowVectorXd residual = Eigen::RowVectorXd::Ones(size);
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size; ++k) residual(k) -= x.mu(h, task(k)) * x.omega(h, k);
  }
  const Eigen::Index mus = static_cast<Eigen::Index>(heads_) * tasks_;
  matrix.setZero(state.size(), state.size());
  for (int h = 0; h < heads_; ++h) {
    const Eigen::Index own_mu = static_cast<Eigen::Index>(h) * tasks_;
    const Eigen::Index own = mus + static_cast<Eigen::Index>(h) * size;
    // Both omegas of one head: w_k w_l sum_f A_hf omega_fk omega_fl         theory: eq:large-context-hessian-entries
    matrix.block(own, own, size, size).noalias() = weighted.transpose() * noise.row(h).asDiagonal() * weighted;
    // mu and omega of one head: w_k (P_i phi_i / L) sum_f E_hf mu_fi omega_fk, and -r_k where i is the task of k
    matrix.block(own_mu, own, tasks_, size).noalias() =
        noise_weight_.asDiagonal() * x.mu.transpose() * correlation.row(h).asDiagonal() * weighted;
    for (int k = 0; k < size; ++k) matrix(own_mu + task(k), own + k) -= bias_weight_(k) * residual(k);
    for (int g = 0; g < heads_; ++g) {
      const Eigen::Index other_mu = static_cast<Eigen::Index>(g) * tasks_;
      const Eigen::Index other = mus + static_cast<Eigen::Index>(g) * size;
      for (int i = 0; i < tasks_; ++i) matrix(own_mu + i, other_mu + i) += noise_weight_(i) * correlation(h, g);
      matrix.block(own_mu, other, tasks_, size).noalias() +=
          correlation(h, g) * (noise_weight_.transpose().cwiseProduct(x.mu.row(g).transpose())) * weighted.row(h);
      matrix.block(own, other, size, size).noalias() += noise(h, g) * weighted.row(g).transpose() * weighted.row(h);
      for (int k = 0; k < size; ++k) {
        const int i = task(k);
        matrix(own_mu + i, other_mu + i) += bias_weight_(k) * x.omega(h, k) * x.omega(g, k);
        matrix(own_mu + i, other + k) += bias_weight_(k) * x.omega(h, k) * x.mu(g, i);
        matrix(own + k, other + k) += bias_weight_(k) * x.mu(h, i) * x.mu(g, i) + multiplicity_(k) * noise(h, g);
      }
    }
  }
  matrix.bottomLeftCorner(state.size() - mus, mus) = matrix.topRightCorner(mus, state.size() - mus).transpose();
}

}  // namespace iclflow
