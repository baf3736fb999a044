#include "frontend/tflite_delegate/delegate.h"

#include <algorithm>
#include <span>

#include "base/caught.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/tflite_delegate/partitioner.h"

namespace skillet::delegate {
namespace {

TfLiteStatus report(TfLiteContext* context, const Result<void>& done) {
  if (done.ok()) return kTfLiteOk;
  context->ReportError(context, "skillet: %s", printable(done.error().message).c_str());
  return kTfLiteError;
}

Delegate& from_host(TfLiteDelegate* delegate) { return *reinterpret_cast<Delegate*>(delegate); }

// User data of the host's node. Never null: a failure must be an error in prepare, not a crash.
struct Node {
  std::unique_ptr<Kernel> kernel;
  std::string failure;
};

Result<std::unique_ptr<Kernel>> take_kernel(TfLiteContext* context, const TfLiteDelegateParams& params) {
  Delegate& delegate = from_host(params.delegate);
  const auto replaced = elements(params.nodes_to_replace), outputs = elements(params.output_tensors);
  {
    const std::lock_guard lock(delegate.mutex);
    const auto matches = [&](const Pending& one) {
      return one.context == context && std::ranges::equal(one.kernel->nodes(), replaced, {}, &HostNode::index);
    };
    const auto found = std::ranges::find_if(delegate.pending, matches);
    if (found != delegate.pending.end()) {
      auto kernel = std::move(found->kernel);
      delegate.pending.erase(found);
      return kernel;
    }
  }
  // The host divided the graph differently from its preview.
  std::vector<HostNode> nodes;
  for (const int index : replaced) {
    SK_TRY_ASSIGN(HostNode node, read_node(context, index));
    if (node.op.kind == ir::OpKind::opaque)  // shared memory was only checked for the preview's sets
      return error(ErrorCode::unsupported, "the host divided the graph differently than announced");
    nodes.push_back(std::move(node));
  }
  return Kernel::create(context, delegate.state, std::move(nodes), {outputs.begin(), outputs.end()});
}

void* node_init(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  auto* node = new (std::nothrow) Node;
  if (node == nullptr) return nullptr;
  const auto made = caught([&]() -> Result<void> {
    SK_TRY_ASSIGN(node->kernel, take_kernel(context, *reinterpret_cast<const TfLiteDelegateParams*>(buffer)));
    return {};
  });
  if (!made.ok()) node->failure = made.error().message;
  return node;
}

void node_free(TfLiteContext* /*context*/, void* data) { delete static_cast<Node*>(data); }

Result<Kernel*> kernel_of(const TfLiteNode* host) {
  const auto* node = static_cast<const Node*>(host->user_data);
  if (node == nullptr) return error(ErrorCode::internal, "no memory");
  if (node->kernel == nullptr) return error(ErrorCode::internal, "{}", node->failure);
  return node->kernel.get();
}

TfLiteStatus node_prepare(TfLiteContext* context, TfLiteNode* host) {
  return report(context, caught([&]() -> Result<void> {
                  SK_TRY_ASSIGN(Kernel* const kernel, kernel_of(host));
                  SK_TRY(kernel->prepare(context));
                  kernel->leave_out_own_memory(*host);
                  return {};
                }));
}

TfLiteStatus node_invoke(TfLiteContext* context, TfLiteNode* host) {
  return report(context, caught([&]() -> Result<void> {
                  SK_TRY_ASSIGN(Kernel* const kernel, kernel_of(host));
                  return kernel->invoke(context);
                }));
}

const char* node_profiling_string(const TfLiteContext* /*context*/, const TfLiteNode* host) {
  const auto* node = static_cast<const Node*>(host->user_data);
  return node == nullptr || node->kernel == nullptr ? "failed" : node->kernel->summary().c_str();
}

Result<Partitioner> choose(TfLiteContext* context, const std::shared_ptr<State>& state) {
  SK_TRY_ASSIGN(Partitioner made, Partitioner::run(context, state));
  std::vector<std::string> parts;
  for (const auto& kernel : made.kernels) parts.push_back(kernel->summary());
  host::log_told(made.told, parts);
  SK_TRY(made.check_strict());
  return made;
}

Result<void> replace_nodes(TfLiteContext* context, Delegate& delegate, Partitioner& partitioner) {
  const std::vector<int> claimed = partitioner.claimed();
  std::vector<int> sized = {static_cast<int>(claimed.size())};
  sized.insert(sized.end(), claimed.begin(), claimed.end());
  {
    const std::lock_guard lock(delegate.mutex);
    for (auto& kernel : partitioner.kernels) delegate.pending.push_back({context, std::move(kernel)});
  }
  TfLiteRegistration registration{};  // zeros where older versions of the struct ended
  registration.init = node_init;
  registration.free = node_free;
  registration.prepare = node_prepare;
  registration.invoke = node_invoke;
  registration.profiling_string = node_profiling_string;
  registration.builtin_code = kTfLiteBuiltinDelegate;
  registration.custom_name = "Skillet";
  registration.version = 1;
  const auto status = context->ReplaceNodeSubsetsWithDelegateKernels(
      context, registration, reinterpret_cast<const TfLiteIntArray*>(sized.data()), &delegate.host);
  const std::lock_guard lock(delegate.mutex);
  std::erase_if(delegate.pending, [&](const Pending& one) { return one.context == context; });
  if (status != kTfLiteOk) return error(ErrorCode::internal, "the host did not take the partitions ({})", int{status});
  return {};
}

// Without strict=1 an error here leaves the graph to the host: a failed Prepare would undo other delegates too.
TfLiteStatus delegate_prepare(TfLiteContext* context, TfLiteDelegate* host) {
  Delegate& delegate = from_host(host);
  if (delegate.state->target.driver == nullptr) return kTfLiteOk;
  const log::ScopedLevel level(delegate.state->options.log);
  const bool strict = delegate.state->options.strict;
  std::optional<Partitioner> chosen;
  const auto done = caught([&]() -> Result<void> {
    SK_TRY_ASSIGN(Partitioner made, choose(context, delegate.state));
    chosen.emplace(std::move(made));
    return {};
  });
  if (!done.ok()) {
    log::message(strict ? log::Level::error : log::Level::warning, "nothing claimed: {}", done.error().message);
    return strict ? report(context, done) : kTfLiteOk;
  }
  if (chosen->kernels.empty()) return kTfLiteOk;
  return report(context, caught([&] { return replace_nodes(context, delegate, *chosen); }));
}

}  // namespace

std::unique_ptr<Delegate> make_delegate(std::shared_ptr<State> state) {
  auto delegate = std::make_unique<Delegate>();
  delegate->state = std::move(state);
  delegate->host.Prepare = delegate_prepare;
  // The host calls a kernel's Prepare again after each change of shapes. Without this flag hosts refuse a graph with a
  // dynamic tensor anywhere: they fail instead of leaving out such ops. (With RequirePropagatedShapes they also prepare
  // the original graph, after a dynamic tensor from the wrong op on.)
  delegate->host.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  if (delegate->state->options.profile) delegate->host.flags |= kTfLiteDelegateFlagsPerOperatorProfiling;
  return delegate;
}

}  // namespace skillet::delegate
