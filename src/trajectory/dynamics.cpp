#include "iclflow/trajectory/dynamics.hpp"

#include <stdexcept>
#include <string>

namespace iclflow {

std::string Dynamics::component(Eigen::Index i) const { return "state[" + std::to_string(i) + "]"; }

void OdeSystem::error_scale(const Eigen::VectorXd& y, double absolute, double relative, Eigen::VectorXd& scale) const {
  scale = (absolute + relative * y.array().abs()).matrix();
}

void OdeSystem::jacobian(const Eigen::VectorXd& /*y*/, Eigen::MatrixXd& /*derivative*/) const {
  throw std::logic_error("this dynamics has no Jacobian");
}

void OdeSystem::jacobian_product(const Eigen::VectorXd& y, const Eigen::VectorXd& direction,
                                 Eigen::VectorXd& product) const {
  Eigen::MatrixXd derivative;
  jacobian(y, derivative);
  product.noalias() = derivative * direction;
}

bool OdeSystem::symmetrised_jacobian(const Eigen::VectorXd& /*y*/, Eigen::MatrixXd& /*matrix*/,
                                     Eigen::VectorXd& /*scale*/) const {
  return false;
}

}  // namespace iclflow
