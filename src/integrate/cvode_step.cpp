#include "cvode_step.hpp"

#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_spgmr.h>

#include <new>
#include <stdexcept>

namespace iclflow {

namespace {

Eigen::Map<Eigen::VectorXd> view(N_Vector v) { return {NV_DATA_S(v), static_cast<Eigen::Index>(NV_LENGTH_S(v))}; }

// What CVODE's call-backs return: its solver shortens the step where the dynamics is not defined.
constexpr int success = 0;
constexpr int recoverable = 1;

}  // namespace

/// CVODE's objects and what its call-backs need. Call-backs are C functions: nothing may be thrown through them.
struct CvodeStep::Solver {
  CvodeStep& step;
  SUNContext context = nullptr;
  N_Vector y = nullptr;
  SUNLinearSolver linear = nullptr;
  void* memory = nullptr;
  Eigen::VectorXd state, direction, result;  ///< copies that Eigen owns
  std::string reason;                        ///< what the dynamics said last

  explicit Solver(CvodeStep& owner) : step(owner) {}
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  ~Solver() {
    if (memory != nullptr) CVodeFree(&memory);
    if (linear != nullptr) SUNLinSolFree(linear);
    if (y != nullptr) N_VDestroy(y);
    if (context != nullptr) SUNContext_Free(&context);
  }

  void make(Eigen::Index size) {
    const auto need = [](bool made) {
      if (!made) throw std::bad_alloc();
    };
    need(SUNContext_Create(nullptr, &context) == 0);
    y = N_VNew_Serial(size, context);
    need(y != nullptr);
    memory = CVodeCreate(CV_BDF, context);
    linear = SUNLinSol_SPGMR(y, SUN_PREC_NONE, 0, context);
    need(memory != nullptr && linear != nullptr);
    need(CVodeInit(memory, velocity, 0.0, y) == CV_SUCCESS);
    CVodeWFtolerances(memory, weights);
    CVodeSetUserData(memory, this);
    CVodeSetMaxNumSteps(memory, 1'000'000);
    CVodeSetErrFile(memory, nullptr);
    need(CVodeSetLinearSolver(memory, linear, nullptr) == CV_SUCCESS);
    direction.setZero(size);
    state.setZero(size);
    if (step.system().has_jacobian()) CVodeSetJacTimes(memory, nullptr, jacobian_times);
  }

  template <typename Call>
  int guarded(const Call& call) {
    try {
      call();
      return result.allFinite() ? success : recoverable;
    } catch (const std::exception& error) {
      reason = error.what();
      return recoverable;
    }
  }

  static Solver& of(void* data) { return *static_cast<Solver*>(data); }

  static int velocity(double /*t*/, N_Vector y, N_Vector rate, void* data) {
    Solver& self = of(data);
    const int flag = self.guarded([&] {
      self.state = view(y);
      self.step.velocity(self.state, self.result);
    });
    if (flag == success) view(rate) = self.result;
    return flag;
  }

  static int jacobian_times(N_Vector v, N_Vector out, double /*t*/, N_Vector y, N_Vector /*rate*/, void* data,
                            N_Vector /*work*/) {
    Solver& self = of(data);
    const int flag = self.guarded([&] {
      self.state = view(y);
      self.direction = view(v);
      self.step.system().jacobian_product(self.state, self.direction, self.result);
    });
    if (flag == success) view(out) = self.result;
    return flag;
  }

  /// Reciprocal allowed errors.
  static int weights(N_Vector y, N_Vector weight, void* data) {
    Solver& self = of(data);
    const int flag = self.guarded([&] {
      self.state = view(y);
      self.step.scale(self.state, self.result);
    });
    if (flag == success) view(weight) = self.result.cwiseInverse();
    return flag;
  }
};

CvodeStep::CvodeStep(const OdeSystem& system, const StepperOptions& options) : SingleStep(system, options) {}
CvodeStep::~CvodeStep() = default;

Attempt CvodeStep::trial(const Point& from, double dt, Point& to, bool& /*rate_known*/) {
  if (!solver_) {
    solver_ = std::make_unique<Solver>(*this);
    solver_->make(from.state.size());
  }
  Solver& s = *solver_;
  if (fresh_ || from.time != time_ || from.state != state_) {
    view(s.y) = from.state;
    CVodeReInit(s.memory, from.time, s.y);
    fresh_ = false;
  }
  s.reason.clear();
  const double end = from.time + dt;
  double reached = from.time;
  CVodeSetStopTime(s.memory, end);
  const int flag = CVode(s.memory, end, s.y, &reached, CV_NORMAL);
  Attempt verdict;
  verdict.accepted = flag >= 0;
  verdict.reason = s.reason;
  if (!verdict.accepted) {
    fresh_ = true;
    to.state = from.state;
    verdict.proposal = 0.25 * dt;
    return verdict;
  }
  verdict.reason.clear();
  to.state = view(s.y);
  (to.state - from.state).cwiseAbs().maxCoeff(&verdict.worst);
  time_ = end;
  state_ = to.state;
  CVodeGetCurrentStep(s.memory, &verdict.proposal);
  verdict.accurate = verdict.proposal;
  return verdict;
}

}  // namespace iclflow
