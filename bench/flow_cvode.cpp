#include <chrono>
#include <nlohmann/json.hpp>

#include "bench/flow_case.hpp"
#include "iclflow/integrate/ode.hpp"

#ifdef ICLFLOW_CVODE
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_spgmr.h>
#endif

namespace iclflow {

#ifdef ICLFLOW_CVODE

namespace {

/// What CVODE's call-backs need. Merged flows only: there the integration coordinates are (mu, omega) themselves.
struct Peer {
  const SpectralFlow& flow;
  const PopulationLoss& loss;
  Eigen::VectorXd speed;  ///< 1 / w
  Eigen::VectorXd y, direction, result;
  long velocities = 0;
  long products = 0;
};

Eigen::Map<Eigen::VectorXd> view(N_Vector v) { return {NV_DATA_S(v), NV_LENGTH_S(v)}; }

int velocity(double /*t*/, N_Vector y, N_Vector rate, void* data) {
  Peer& peer = *static_cast<Peer*>(data);
  ++peer.velocities;
  peer.y = view(y);
  peer.flow.velocity(peer.y, peer.result);
  view(rate) = peer.result;
  return 0;
}

int jacobian_times(N_Vector v, N_Vector out, double /*t*/, N_Vector y, N_Vector /*rate*/, void* data,
                   N_Vector /*work*/) {
  Peer& peer = *static_cast<Peer*>(data);
  ++peer.products;
  peer.y = view(y);
  peer.direction = view(v);
  peer.loss.hessian_vector(peer.y, peer.direction, peer.result);
  view(out) = -peer.speed.cwiseProduct(peer.result);
  return 0;
}

}  // namespace

nlohmann::json integrate_by_cvode(const FlowCase& flow_case, bool full) {
  const SpectralFlow flow = flow_case.flow(full);
  const auto loss = make_population_loss(flow_case.closure, flow_case.problem, flow.coordinates());
  const Eigen::VectorXd start = flow.initial();
  Peer peer{flow, *loss, Eigen::VectorXd::Ones(start.size()), start, start, start};
  SpectralView<double> speed(peer.speed.data(), flow_case.problem.heads, flow_case.problem.tasks(),
                             flow.coordinates().size());
  for (int k = 0; k < flow.coordinates().size(); ++k) {
    speed.omega.col(k) /= flow.coordinates().multiplicity[static_cast<std::size_t>(k)];
  }
  const StepperOptions options;
  const auto begin = std::chrono::steady_clock::now();
  SUNContext context = nullptr;
  SUNContext_Create(nullptr, &context);
  N_Vector y = N_VNew_Serial(start.size(), context);
  view(y) = start;
  void* solver = CVodeCreate(CV_BDF, context);
  CVodeInit(solver, velocity, 0.0, y);
  CVodeSStolerances(solver, options.relative_tolerance, options.absolute_tolerance);
  CVodeSetUserData(solver, &peer);
  CVodeSetMaxNumSteps(solver, 100'000'000);
  SUNLinearSolver linear = SUNLinSol_SPGMR(y, SUN_PREC_NONE, 0, context);
  CVodeSetLinearSolver(solver, linear, nullptr);
  CVodeSetJacTimes(solver, nullptr, jacobian_times);
  double time = 0.0;
  const int flag = CVode(solver, flow_case.final_time, y, &time, CV_NORMAL);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  long steps = 0;
  CVodeGetNumSteps(solver, &steps);
  nlohmann::json result{{"seconds", seconds}, {"steps", steps}, {"velocities", peer.velocities + peer.products}};
  peer.y = view(y);
  if (flag >= 0) result["loss"] = loss->value(peer.y);
  CVodeFree(&solver);
  SUNLinSolFree(linear);
  N_VDestroy(y);
  SUNContext_Free(&context);
  return result;
}

#else

nlohmann::json integrate_by_cvode(const FlowCase& /*flow_case*/, bool /*full*/) { return nlohmann::json::object(); }

#endif

}  // namespace iclflow
