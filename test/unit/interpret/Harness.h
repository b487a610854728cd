// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tenon::interpret {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float nan32 = std::numeric_limits<float>::quiet_NaN();

/// The argument words of a launch.
class Arguments {
public:
  template <class T> Arguments &view(T *base, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    words.push_back(reinterpret_cast<int64_t>(base));
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), strides.begin(), strides.end());
    return *this;
  }
  template <class T> Arguments &view(std::vector<T> &data) {
    return view(data.data(), {static_cast<int64_t>(data.size())}, {1});
  }
  /// Row-major.
  template <class T> Arguments &view(std::vector<T> &data, int64_t rows, int64_t columns) {
    return view(data.data(), {rows, columns}, {columns, 1});
  }
  Arguments &scalar(int64_t word) {
    words.push_back(word);
    return *this;
  }
  std::vector<int64_t> words;
};

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() { tile::loadTileDialects(context); }

  /// The one function of a module given as text: either a whole function, or the body of one with `parameters`.
  mlir::func::FuncOp parse(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), "kernel.mlir");
    EXPECT_TRUE(module) << text;
    if (!module)
      return {};
    return *module->getOps<mlir::func::FuncOp>().begin();
  }

  mlir::func::FuncOp parse(const std::string &parameters, const std::string &body) {
    return parse("func.func @kernel(" + parameters + ") {\n" + body + "\nreturn }");
  }

  std::string launch(const std::string &parameters, const std::string &body, const Arguments &arguments,
                     const Options &options = {}) {
    mlir::func::FuncOp kernel = parse(parameters, body);
    return kernel ? interpretLaunch(kernel, arguments.words, options) : "does not parse";
  }

  /// Applies an element-wise operation: %a, %b, %c are tiles of the inputs, %r is the result; in `body`, $T stands for
  /// the type of the inputs, $U for that of the result.
  template <class Out, class In>
  std::vector<Out> apply(const std::string &inType, const std::string &outType, std::string body,
                         std::vector<std::vector<In>> inputs) {
    std::string count = std::to_string(inputs[0].size());
    std::string inTile = "tensor<" + count + "x" + inType + ">", outTile = "tensor<" + count + "x" + outType + ">";
    auto substitute = [&](const std::string &mark, const std::string &text) {
      for (size_t at; (at = body.find(mark)) != std::string::npos;)
        body.replace(at, mark.size(), text);
    };
    substitute("$T", inTile);
    substitute("$U", outTile);
    std::vector<Out> result(inputs[0].size());
    Arguments arguments;
    std::string parameters, loads = "%c0 = arith.constant 0 : index\n";
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string name(1, static_cast<char>('a' + i)), view = "!tile.view<1, " + inType + ">";
      parameters += "%v" + name + ": " + view + ", ";
      loads += "%" + name + " = tile.load %v" + name + "[%c0] : " + view + " -> " + inTile + "\n";
      arguments.view(inputs[i]);
    }
    arguments.view(result);
    std::string view = "!tile.view<1, " + outType + ">";
    EXPECT_EQ(launch(parameters + "%out: " + view,
                     loads + body + "\ntile.store %r, %out[%c0] : " + outTile + ", " + view, arguments),
              "");
    return result;
  }

  std::vector<float> f32(const std::string &op, std::vector<std::vector<float>> inputs) {
    return apply<float>("f32", "f32", "%r = " + op + " : $T", std::move(inputs));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Equal bit for bit, except that all NaNs are equal.
inline void expectSame(const std::vector<float> &got, const std::vector<float> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i])
                                    : std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want[i]))
        << "element " << i << ": " << got[i] << ", not " << want[i];
}

} // namespace tenon::interpret
