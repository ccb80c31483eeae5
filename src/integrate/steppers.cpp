// The only file that includes Odeint. The Eigen bridge must be the whole eigen.hpp: with parts of it the steppers
// compile and return the initial state. It does not include what it specialises, so the order below matters.
// clang-format off
#include <boost/numeric/odeint/algebra/algebra_dispatcher.hpp>
#include <boost/numeric/odeint/external/eigen/eigen.hpp>
// clang-format on
#include <Eigen/LU>
#include <algorithm>
#include <boost/numeric/odeint/stepper/bulirsch_stoer.hpp>
#include <boost/numeric/odeint/stepper/euler.hpp>
#include <boost/numeric/odeint/stepper/rosenbrock4.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta4.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_cash_karp54.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_fehlberg78.hpp>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "auto_step.hpp"
#include "cholesky_kernels.hpp"
#include "rock4.hpp"
#ifdef ICLFLOW_CVODE
#include "cvode_step.hpp"
#endif
#include "single_step.hpp"

namespace iclflow {
namespace {

namespace odeint = boost::numeric::odeint;
using State = Eigen::VectorXd;

/// Euler and the classical Runge-Kutta method: no error estimate, every finite step is taken.
template <class Stepper>
class FixedStep final : public SingleStep {
 public:
  using SingleStep::SingleStep;

 private:
  Attempt trial(const Point& from, double dt, Point& to, bool& /*rate_known*/) override {
    const auto right_side = [this](const State& y, State& rate, double) { velocity(y, rate); };
    stepper_.do_step(right_side, from.state, from.rate, from.time, to.state, dt);
    Attempt verdict;
    verdict.accepted = true;
    verdict.proposal = dt;
    return verdict;
  }
  [[nodiscard]] int error_power() const override { return static_cast<int>(stepper_.order()) + 1; }

  Stepper stepper_;
};

/// Explicit Runge-Kutta pairs with an error estimate, the step judged by error_scale.
template <class Stepper>
class EmbeddedPair final : public SingleStep {
 public:
  using SingleStep::SingleStep;

 private:
  Attempt trial(const Point& from, double dt, Point& to, bool& rate_known) override {
    const auto right_side = [this](const State& y, State& rate, double) { velocity(y, rate); };
    error_.resize(from.state.size());
    if constexpr (std::is_same_v<Stepper, odeint::runge_kutta_dopri5<State>>) {
      to.rate.resize(from.state.size());
      stepper_.do_step(right_side, from.state, from.rate, from.time, to.state, to.rate, dt, error_);
      rate_known = true;  // its last stage is the velocity at the new state
    } else {
      stepper_.do_step(right_side, from.state, from.rate, from.time, to.state, dt, error_);
    }
    return judge(from, dt, error_);
  }
  [[nodiscard]] int error_power() const override { return static_cast<int>(stepper_.error_order()) + 1; }

  Stepper stepper_;
  State error_;
};

/// Extrapolated midpoint rule. Odeint judges it with one absolute and one relative tolerance, so it works here on
/// y / error_scale with absolute tolerance 1; scales are rounded to powers of two, which costs no rounding error.
/// Odeint keeps the order of the last step inside, out of reach of a checkpoint: hence restart().
class BulirschStoer final : public SingleStep {
 public:
  using SingleStep::SingleStep;
  void restart() override { stepper_.reset(); }
  [[nodiscard]] bool carries_order() const override { return true; }

 private:
  Attempt trial(const Point& from, double dt, Point& to, bool& /*rate_known*/) override {
    scale(from.state, scale_);
    for (double& s : scale_) s = std::ldexp(1.0, std::ilogb(s));
    const auto right_side = [this](const State& z, State& rate, double) {
      unscaled_ = z.cwiseProduct(scale_);
      velocity(unscaled_, unscaled_rate_);
      rate = unscaled_rate_.cwiseQuotient(scale_);
    };
    in_ = from.state.cwiseQuotient(scale_);
    in_rate_ = from.rate.cwiseQuotient(scale_);
    out_.resize(in_.size());
    double time = from.time;
    double proposal = dt;
    Attempt verdict;
    verdict.accepted = stepper_.try_step(right_side, in_, in_rate_, time, out_, proposal) == odeint::success;
    to.state = out_.cwiseProduct(scale_);
    // no error by component is given away: name the one that moves most
    (out_ - in_).cwiseAbs().maxCoeff(&verdict.worst);
    // a proposal that is not a number becomes the largest allowed; attempt() then looks at the state itself
    verdict.proposal = std::max(0.2 * dt, std::min(verdict.accepted ? 5.0 * dt : 0.5 * dt, proposal));
    return verdict;
  }
  [[nodiscard]] int error_power() const override { return 5; }

  odeint::bulirsch_stoer<State> stepper_{1.0, 0.0};
  State scale_, in_, in_rate_, out_, unscaled_, unscaled_rate_;
};

/// Odeint's rosenbrock4 with its coefficients and the dynamics' own Jacobian. The stages are written out here on Eigen:
/// the uBLAS of Boost 1.74 that Odeint's version is tied to does not compile as C++20 (std::allocator::construct is
/// gone), and its LU is many times slower. The dynamics is autonomous, so the terms with d f / d t drop out.
class Rosenbrock final : public SingleStep {
 public:
  Rosenbrock(const OdeSystem& system, const StepperOptions& options) : SingleStep(system, options) {
    if (!system.has_jacobian()) throw std::invalid_argument("rosenbrock4 needs a dynamics with a Jacobian");
  }

 private:
  Attempt trial(const Point& from, double dt, Point& to, bool& /*rate_known*/) override {
    const auto& c = coefficients_;
    const State& y = from.state;
    factorise(y, dt);
    solve(from.rate, g1_);
    velocity(y + c.a21 * g1_, rate_);
    solve(rate_ + (c.c21 / dt) * g1_, g2_);
    velocity(y + c.a31 * g1_ + c.a32 * g2_, rate_);
    solve(rate_ + (c.c31 * g1_ + c.c32 * g2_) / dt, g3_);
    velocity(y + c.a41 * g1_ + c.a42 * g2_ + c.a43 * g3_, rate_);
    solve(rate_ + (c.c41 * g1_ + c.c42 * g2_ + c.c43 * g3_) / dt, g4_);
    to.state = y + c.a51 * g1_ + c.a52 * g2_ + c.a53 * g3_ + c.a54 * g4_;
    velocity(to.state, rate_);
    solve(rate_ + (c.c51 * g1_ + c.c52 * g2_ + c.c53 * g3_ + c.c54 * g4_) / dt, g5_);
    to.state += g5_;
    velocity(to.state, rate_);
    solve(rate_ + (c.c61 * g1_ + c.c62 * g2_ + c.c63 * g3_ + c.c64 * g4_ + c.c65 * g5_) / dt, error_);
    to.state += error_;
    return judge(from, dt, error_);
  }
  [[nodiscard]] int error_power() const override { return Odeint::error_order + 1; }

  /// Factors I / (gamma dt) - J: Cholesky's where J has a symmetric form and dt is not too long for it, else LU. The
  /// Jacobian of the last state is kept for the retries after a rejection.
  void factorise(const State& y, double dt) {
    const double shift = 1.0 / (coefficients_.gamma * dt);
    if (at_.size() != y.size() || at_ != y) {
      at_.resize(0);  // both may throw
      symmetric_ = system().symmetrised_jacobian(y, jacobian_, symmetriser_);
      if (!symmetric_) system().jacobian(y, jacobian_);
      at_ = y;
    }
    definite_ = symmetric_ && cholesky_.factor(jacobian_, shift);
    if (definite_) return;
    if (symmetric_) {
      system().jacobian(y, jacobian_);
      symmetric_ = false;
    }
    shifted_ = -jacobian_;
    shifted_.diagonal().array() += shift;
    lu_.compute(shifted_);
  }

  void solve(const State& right, State& solution) {
    if (!definite_) {
      solution = lu_.solve(right);
      return;
    }
    // (I / (gamma dt) + T S T^-1)^-1 = T (I / (gamma dt) + S)^-1 T^-1       theory: eq:symmetrised-jacobian
    scaled_ = right.cwiseQuotient(symmetriser_);
    cholesky_.solve(scaled_, solution);
    solution.array() *= symmetriser_.array();
  }

  using Odeint = odeint::rosenbrock4<double>;
  const odeint::default_rosenbrock_coefficients<double> coefficients_;
  Eigen::MatrixXd jacobian_, shifted_;
  Cholesky cholesky_;
  State symmetriser_, scaled_;
  bool symmetric_ = false;  ///< jacobian_ is the symmetric matrix of eq:symmetrised-jacobian
  bool definite_ = false;   ///< the factors in use are Cholesky's
  Eigen::PartialPivLU<Eigen::MatrixXd> lu_;
  State rate_, error_, at_, g1_, g2_, g3_, g4_, g5_;
};

}  // namespace

const std::vector<StepperInfo>& steppers() {
  static const std::vector<StepperInfo> list = {
      {"euler", 1, false, false, "Euler, Institutiones calculi integralis I (1768)"},
      {"rk4", 4, false, false, "Kutta, Z. Math. Phys. 46, 435 (1901)"},
      {"cash_karp54", 5, true, false, "Cash & Karp, ACM Trans. Math. Softw. 16, 201 (1990)"},
      {"dopri5", 5, true, false, "Dormand & Prince, J. Comput. Appl. Math. 6, 19 (1980)"},
      {"fehlberg78", 8, true, false, "Fehlberg, NASA TR R-287 (1968)"},
      {"bulirsch_stoer", 4, true, false, "Bulirsch & Stoer, Numer. Math. 8, 1 (1966)"},
      {"rosenbrock4", 4, true, true, "Hairer & Wanner, Solving Ordinary Differential Equations II, RODAS (1996)"},
      {"rock4", 4, true, false, "stabilised explicit, any size: Abdulle, SIAM J. Sci. Comput. 23, 2041 (2002)"},
      {"auto", 5, true, false,
       "dopri5, then rock4 or rosenbrock4 where stability bounds the step: Hairer & Wanner II, IV.2 (1996)"},
#ifdef ICLFLOW_CVODE
      {"cvode", 1, true, false, "BDF and Krylov of SUNDIALS: Hindmarsh et al., ACM Trans. Math. Softw. 31, 363 (2005)"},
#endif
  };
  return list;
}

bool has_cvode() {
#ifdef ICLFLOW_CVODE
  return true;
#else
  return false;
#endif
}

std::unique_ptr<SingleStep> make_single_step(const OdeSystem& system, const StepperOptions& options) {
  const std::string& name = options.stepper;
  if (name == "euler") return std::make_unique<FixedStep<odeint::euler<State>>>(system, options);
  if (name == "rk4") return std::make_unique<FixedStep<odeint::runge_kutta4<State>>>(system, options);
  if (name == "cash_karp54") {
    return std::make_unique<EmbeddedPair<odeint::runge_kutta_cash_karp54<State>>>(system, options);
  }
  if (name == "dopri5") return std::make_unique<EmbeddedPair<odeint::runge_kutta_dopri5<State>>>(system, options);
  if (name == "fehlberg78") {
    return std::make_unique<EmbeddedPair<odeint::runge_kutta_fehlberg78<State>>>(system, options);
  }
  if (name == "bulirsch_stoer") return std::make_unique<BulirschStoer>(system, options);
  if (name == "rosenbrock4") return std::make_unique<Rosenbrock>(system, options);
  if (name == "rock4") return std::make_unique<Rock4>(system, options);
  if (name == "auto") return std::make_unique<AutoStep>(system, options);
#ifdef ICLFLOW_CVODE
  if (name == "cvode") return std::make_unique<CvodeStep>(system, options);
#endif
  throw std::invalid_argument("unknown stepper '" + name + "'");
}

}  // namespace iclflow
