// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

/// `weights` is the type the probabilities are rounded to before they meet the values: what a matrix unit does to them.
template <class T> void attentionReference(Arguments &arguments, bool causal, DType weights) {
  const Tensor &q = arguments[0].tensor(), &k = arguments[1].tensor();
  std::vector<T> query = valuesOf<T>(q), key = valuesOf<T>(k), value = valuesOf<T>(arguments[2].tensor());
  T scale = static_cast<T>(std::get<double>(arguments[4].value()));
  int64_t heads = q.size(1), kvHeads = k.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  std::vector<T> out(query.size());
  for (int64_t batch = 0; batch < q.size(0); ++batch)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < queries; ++i) {
        int64_t shared = (batch * kvHeads + head / (heads / kvHeads)) * keys * dim; // where this head's keys start
        int64_t own = ((batch * heads + head) * queries + i) * dim;
        int64_t visible = causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys;
        std::vector<T> score(static_cast<size_t>(visible));
        T largest = -std::numeric_limits<T>::infinity(), total = 0;
        for (int64_t j = 0; j < visible; ++j) {
          for (int64_t d = 0; d < dim; ++d)
            score[j] += query[own + d] * key[shared + j * dim + d];
          score[j] *= scale;
          largest = std::max(largest, score[j]);
        }
        if (largest == -std::numeric_limits<T>::infinity())
          largest = 0; // every score is minus infinity: no key counts, and the output is zero
        for (T &s : score) {
          s = std::exp(s - largest);
          total += s;
        }
        if (total == 0)
          continue;
        for (int64_t j = 0; j < visible; ++j) {
          T weight = isFloat(weights) && sizeOf(weights) < 4 ? static_cast<T>(roundTo(weights, score[j])) : score[j];
          for (int64_t d = 0; d < dim; ++d)
            out[own + d] += weight * value[shared + j * dim + d];
        }
        for (int64_t d = 0; d < dim; ++d)
          out[own + d] /= total;
      }
  setValues(arguments[3].tensor(), out);
}

} // namespace tenon::zoo
