// Runs another TensorFlow Lite delegate in a process of its own: Python with LiteRT or tflite-runtime, connected by
// pipes. Its crashes stay there. It ends with this process, and is killed if it does not.
// Called by `skillet eval --against`.
// Must not know: our devices and sessions.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

struct DelegateHostOptions {
  std::string model, library, python = "python3";
  std::vector<std::string> settings;  // "key=value", for the delegate
};

class DelegateHost {
 public:
  // `graph`: graph of the same model. An error if Python, a runtime or the library cannot be used, or if shapes differ.
  static Result<std::unique_ptr<DelegateHost>> start(const DelegateHostOptions& options, const ir::Graph& graph);
  DelegateHost(const DelegateHost&) = delete;
  DelegateHost& operator=(const DelegateHost&) = delete;
  ~DelegateHost();

  // "libteflon.so in ai-edge-litert 2.3.0".
  const std::string& name() const { return name_; }
  // Number of operations of the model, and those that the delegate took; none: the runtime does not report it.
  size_t ops() const { return ops_; }
  const std::optional<std::vector<size_t>>& claimed() const { return claimed_; }
  // The delegate's last message before the first inference; empty: none.
  const std::string& words() const { return words_; }
  // The outputs of one inference, all in the graph's order.
  Result<std::vector<Bytes>> run(std::span<const Bytes> inputs);

 private:
  DelegateHost() = default;
  Result<void> begin(const DelegateHostOptions& options);
  Result<void> greet(const DelegateHostOptions& options, const ir::Graph& graph);
  Result<std::string> first_line();
  Result<void> read_all(std::span<uint8_t> bytes);
  int end();  // returns its status as waitpid() does
  Error gone();

  std::string library_, name_, words_;
  std::vector<size_t> output_bytes_;
  size_t ops_ = 0;
  std::optional<std::vector<size_t>> claimed_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1, said_ = -1;  // its standard input, our messages, its standard error
};

}  // namespace skillet::tools
