// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/task.h"

#include "stepwell/train/series.h"
#include "stepwell/train/text.h"

#include "train/sampled_task.h"
#include "train/series_task.h"
#include "train/text_task.h"

namespace stepwell::train {

std::unique_ptr<Task> make_task(const Recipe& recipe) {
  const auto seed = static_cast<std::uint64_t>(recipe.seed);
  if (!recipe.task.empty()) {
    return std::make_unique<SampledTask>(recipe.task, make_sequence_task(recipe.task, recipe.task_options), recipe.seed,
                                         recipe.length, recipe.held_out);
  }
  if (!recipe.csv.empty()) {
    return std::make_unique<SeriesTask>(read_csv_column(recipe.csv, recipe.column), recipe.hold_out_fraction,
                                        recipe.length, seed);
  }
  return std::make_unique<TextTask>(ByteText::load(recipe.text, recipe.hold_out, recipe.hold_out_fraction),
                                    recipe.length, seed);
}

}  // namespace stepwell::train
