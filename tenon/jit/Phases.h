// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: what every phase of a pipeline needs.
#pragma once

#include "tenon/base/Error.h"
#include "tenon/jit/Compiler.h"
#include "tenon/jit/Jit.h"
#include "tenon/profile/Recorder.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <string>

namespace tenon::jit {

/// Adds the time between its construction and its destruction to the report.
class PhaseTimer {
public:
  PhaseTimer(CompileReport &report, const char *name)
      : report_(report), name_(name), span_(profile::Kind::phase, name) {}
  ~PhaseTimer() {
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
    report_.phases.push_back({name_, elapsed.count()});
  }

private:
  CompileReport &report_;
  const char *name_;
  profile::Span span_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

inline std::string print(mlir::ModuleOp module, bool withLocations = false) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  if (withLocations)
    flags.enableDebugInfo(true, /*prettyForm=*/false);
  module.print(stream, flags);
  return text;
}

/// The module as the text that was asked for.
inline void printTo(EmitRequest &emit, mlir::ModuleOp module) {
  llvm::raw_string_ostream stream(emit.text);
  mlir::OpPrintingFlags flags;
  if (emit.withLines)
    flags.enableDebugInfo(true, /*prettyForm=*/false).useLocalScope();
  module.print(stream, flags);
}

/// Collects MLIR diagnostics while it lives; throws the first error with its place.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext &context)
      : handler_(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && text_.empty()) {
            if (auto loc = llvm::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation())) {
              where_.file = loc.getFilename().str();
              where_.line = loc.getLine();
            }
            text_ = diagnostic.str();
          }
          return mlir::success();
        }) {}
  /// The user's mistakes are refused while tracing: whatever fails later is a defect of ours.
  [[noreturn]] void raise(const char *phase) {
    throw InternalError("phase " + std::string(phase) + " failed" +
                        (text_.empty() ? "" : ": " + (where_ ? where_.str() + ": " : "") + text_));
  }

private:
  mlir::ScopedDiagnosticHandler handler_;
  std::string text_;
  SourceLine where_;
};

} // namespace tenon::jit
