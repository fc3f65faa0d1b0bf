// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>

#include "stepwell/core/config.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/models/causal_lm.h"

#include "tests/cli/run_stepwell.h"
#include "tests/io/well_formed.h"
#include "tests/train/scratch_folder.h"
#include "tests/train/small_run.h"

namespace stepwell::cli {
namespace {

using train::ScratchFolder;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Arguments that train a tiny model on scratch's file "text" for a moment.
std::vector<std::string> tiny(const ScratchFolder& scratch, const std::string& run, const std::string& steps = "30") {
  return {"train",
          "--text",
          scratch.path("text"),
          "--out",
          scratch.path(run),
          "--set",
          "train.steps=" + steps,
          "--set",
          "train.length=16",
          "--set",
          "train.batch=2",
          "--set",
          "model.width=8",
          "--set",
          "model.layers=1",
          "--set",
          "train.save_every=10"};
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& text) {
  const CommandResult result = run_stepwell(arguments);
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_PRED2(contains, result.err, text);
  EXPECT_EQ(result.out, "");
}

void expect_failure(const std::vector<std::string>& arguments, const std::string& text) {
  const CommandResult result = run_stepwell(arguments);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_PRED2(contains, result.err, text);
  EXPECT_EQ(result.out, "");
}

TEST(Cli, ExplainsUsage) {
  EXPECT_EQ(run_stepwell({"--help"}).status, 0);
  EXPECT_PRED2(contains, run_stepwell({"--help"}).out, "generate");
  EXPECT_PRED2(contains, run_stepwell({"train", "--help"}).out, "--hold-out");
  EXPECT_PRED2(contains, run_stepwell({"--version"}).out, "stepwell ");
  EXPECT_PRED2(contains, run_stepwell({"train", "--help"}).out, "default 0; 0: one per processor");
  EXPECT_PRED2(contains, run_stepwell({"bench", "--help"}).out, "default 1; 0: one per processor");
  expect_usage_error({}, "subcommand is required");
  expect_usage_error({"trian"}, "did you mean train?");
  expect_usage_error({"train", "--holdout", "x"}, "unknown option --holdout; did you mean --hold-out?");
  expect_usage_error({"train", "--threads", "many"}, "expected a number from 0 to 1024");
  expect_usage_error({"train", "--threads", "-1"}, "expected a number from 0 to 1024");
  expect_usage_error({"train"}, "nothing to train on");
  expect_usage_error({"eval"}, "run is required");
  expect_usage_error({"generate", "x", "--temperature", "nan"}, "expected a number");
  expect_usage_error({"generate", "x", "--bytes", "-5"}, "expected a number");
  expect_usage_error({"verify", "--chunk", "3"}, "--chunk goes with --inputs");
  expect_usage_error({"bench", "--seeds", "3"}, "--seeds goes with --memory");
  expect_usage_error({"bench", "--op", "none"}, "no op \"none\"; there are matmul");
}

TEST(Cli, SuggestsRecipeKeys) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  const std::string text = scratch.path("text");
  expect_usage_error({"train", "--text", text, "--set", "train.stps=3"}, "did you mean steps?");
  expect_usage_error({"train", "--text", text, "--set", "steps=3"}, "did you mean train.steps?");
  expect_usage_error({"train", "--text", text, "--set", "model.widht=3"}, "did you mean width?");
  expect_usage_error({"train", "--text", text, "--set", "model.mixer_options.dstate=3"}, "did you mean d_state?");
  expect_usage_error({"train", "--text", text, "--set", "model.mixer=manba"}, "did you mean mamba?");
  expect_usage_error({"train", "--text", text, "--set", "train.lr=-1"}, "lr = -1");
  expect_usage_error({"train", "--text", text, "--set", "train.beta1=1"}, "beta1 = 1, expected a number from 0 to 0.9");
  expect_usage_error({"train", "--text", text, "--set", "train.eps=0"}, "expected a number from 1e-30 to 1");
  expect_usage_error({"train", "--text", text, "--set", "train.lr"}, "expected key=value");
  scratch.write("recipe.toml", "[train]\nstpes = 3\n[data]\ntext = \"" + text + "\"\n");
  expect_usage_error({"train", scratch.path("recipe.toml")}, "did you mean steps?");
}

TEST(Cli, SaysWhatIsWrongBeforeAnyWork) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  scratch.write("short", "too short");
  scratch.write("empty", "");
  scratch.write("broken.toml", "[train\nsteps = ");
  scratch.write("series.csv", "t,x\n1,2\n");
  expect_failure({"train", "--text", scratch.path("short"), "--out", scratch.path("a")}, "bytes to train on, expected");
  expect_failure({"train", "--text", scratch.path("empty"), "--out", scratch.path("a")}, "is empty");
  expect_failure({"train", "--text", scratch.path("none"), "--out", scratch.path("a")}, "no file or folder");
  expect_failure({"train", "--csv", scratch.path("series.csv"), "--column", "x", "--out", scratch.path("a")},
                 "values to train on, expected");
  expect_failure({"train", "--csv", scratch.path("series.csv"), "--column", "y", "--out", scratch.path("a")},
                 "no column y");
  expect_failure({"train", scratch.path("missing.toml")}, "missing.toml");
  expect_failure({"train", scratch.path("broken.toml")}, "broken.toml");
  auto below_a_file = tiny(scratch, "text/run");
  expect_failure(below_a_file, "text/run");
  expect_failure({"train", "--resume", scratch.path("none")}, "none");
  expect_failure({"eval", scratch.path("none")}, "holds neither a model");
  expect_failure({"generate", scratch.path("none")}, "holds neither a model");
  expect_failure({"inspect", scratch.path("none")}, "none");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("a")));
}

TEST(Cli, TrainsEvaluatesAndGenerates) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  const CommandResult trained = run_stepwell(tiny(scratch, "run"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_PRED2(contains, trained.out, "bits per byte");
  EXPECT_PRED2(contains, trained.err, "100 %  step 30/30");
  EXPECT_EQ(trained.err.find('\r'), std::string::npos) << "a bar is drawn where there is no terminal";

  const CommandResult measured = run_stepwell({"eval", scratch.path("run")});
  EXPECT_EQ(measured.status, 0) << measured.err;
  EXPECT_EQ(measured.out, trained.out);
  const CommandResult json = run_stepwell({"eval", scratch.path("run"), "--json"});
  EXPECT_TRUE(io::parse_json(json.out, "eval").find("bits_per_byte")->is_number());
  const CommandResult files = run_stepwell({"eval", scratch.path("run"), "--text", scratch.path("text")});
  EXPECT_PRED2(contains, files.out, "text");

  const CommandResult text = run_stepwell({"generate", scratch.path("run"), "--prompt", "line ", "--bytes", "40"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out.size(), 45u);
  EXPECT_TRUE(text.out.starts_with("line "));
  const std::string checkpoint = scratch.path("run/checkpoints/step-00000030");
  EXPECT_EQ(run_stepwell({"generate", checkpoint, "--prompt-file", "-", "--bytes", "40"}, "line ").out, text.out);
  expect_usage_error({"eval", checkpoint}, "name a run, or give --text");

  const CommandResult inspected = run_stepwell({"inspect", scratch.path("run")});
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_PRED2(contains, inspected.out, "backbone.embeddings.weight");
  EXPECT_EQ(run_stepwell({"train", "--resume", scratch.path("run")}).status, 0);
  expect_failure(tiny(scratch, "run"), "holds a run already");
}

// A folder as Hugging Face has it does what the same model in a folder of our own does.
TEST(Cli, ReadsPublishedModels) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  const auto model = models::make_causal_lm({.backbone = {.width = 8}}, Rng(1));
  models::save_model(*model, scratch.path("own"));
  io::make_folder(scratch.path("published"));
  io::write_safetensors(scratch.path("published/model.safetensors"), std::as_const(*model).named_parameters());
  scratch.write("published/config.json",
                R"({"model_type": "mamba", "hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 256})");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"generate", "--bytes", "20"}, {"eval", "--text", scratch.path("text")}}) {
    const auto output_for = [&](const char* folder) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.begin() + 1, scratch.path(folder));
      const CommandResult result = run_stepwell(arguments);
      EXPECT_EQ(result.status, 0) << result.err;
      return result.out;
    };
    EXPECT_EQ(output_for("published"), output_for("own")) << command[0];
  }
  const CommandResult inspected = run_stepwell({"inspect", scratch.path("published")});
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_PRED2(contains, inspected.out, "model_type");
  EXPECT_PRED2(contains, inspected.out, "weight decay");

  const auto tokens = models::make_causal_lm({.backbone = {.width = 8}, .vocab_size = 300}, Rng(1));
  models::save_model(*tokens, scratch.path("tokens"));
  expect_failure({"generate", scratch.path("tokens")}, "expected a language model over 256 bytes");
  expect_failure({"eval", scratch.path("tokens"), "--text", scratch.path("text")}, "over 256 bytes");
}

TEST(Cli, TrainsAForecaster) {
  const ScratchFolder scratch;
  std::string csv = "time,level\n";
  for (int i = 0; i < 300; ++i) csv += std::to_string(i) + "," + std::to_string((i * i) % 17) + "\n";
  scratch.write("data.csv", csv);
  const CommandResult trained =
      run_stepwell({"train", "--csv", scratch.path("data.csv"), "--column", "level", "--out", scratch.path("run"),
                    "--set", "train.steps=10", "--set", "train.length=16", "--set", "model.width=8"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_PRED2(contains, trained.out, "persistence");
  EXPECT_EQ(run_stepwell({"eval", scratch.path("run")}).out, trained.out);
  expect_failure({"generate", scratch.path("run")}, "expected a language model");
}

TEST(Cli, ForecastsASeries) {
  const ScratchFolder scratch;
  std::string csv;  // no names
  for (int i = 0; i < 300; ++i) csv += std::to_string(i) + "," + std::to_string(50 + (i * i) % 17) + "\n";
  scratch.write("data.csv", csv);
  scratch.write("broken.csv", csv + "300,\n");
  ASSERT_EQ(run_stepwell({"train", "--csv", scratch.path("data.csv"), "--column", "2", "--out", scratch.path("run"),
                          "--set", "train.steps=10", "--set", "train.length=16", "--set", "model.width=8"})
                .status,
            0);
  const CommandResult shown = run_stepwell({"forecast", scratch.path("run"), "--ahead", "3"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  for (const char* part : {"  301  ", "  303  ", "values 271 to 300", "persistence", "best exponential average"}) {
    EXPECT_PRED2(contains, " " + shown.out, part);
  }
  const std::string model = scratch.path("run/checkpoints/step-00000010");
  const std::vector<std::string> bare = {"forecast", model, "--csv", scratch.path("data.csv"),
                                         "--column", "2",   "--json"};
  const Config json = io::parse_json(run_stepwell(bare).out, "forecast");
  EXPECT_EQ(json.find("next")->as_array("").size(), 10u);
  EXPECT_EQ(json.find("values")->as_integer(""), 299);
  EXPECT_EQ(json.find("read")->as_integer(""), 300);
  std::string far;  // the same, far from 0: what varies is shown
  for (int i = 0; i < 300; ++i) far += std::to_string(1000000000 + (i * i) % 17) + "\n";
  scratch.write("far.csv", far);
  ASSERT_EQ(run_stepwell({"train", "--csv", scratch.path("far.csv"), "--column", "1", "--out", scratch.path("far"),
                          "--set", "train.steps=10", "--set", "train.length=16", "--set", "model.width=8"})
                .status,
            0);
  EXPECT_PRED2(contains, run_stepwell({"forecast", scratch.path("far"), "--ahead", "1"}).out, "  301  10000000");
  expect_failure({"forecast", scratch.path("run"), "--csv", scratch.path("broken.csv")},
                 "line 301: no value in column 2");
  expect_usage_error({"forecast", model}, "give --csv");
  expect_usage_error({"forecast", model, "--csv", scratch.path("data.csv")}, "give --column");
}

TEST(Cli, TrainsOnATaskByName) {
  const ScratchFolder scratch;
  const CommandResult trained =
      run_stepwell({"train", "--task", "needle", "--out", scratch.path("run"), "--set", "train.steps=3", "--set",
                    "train.length=12", "--set", "model.width=8", "--set", "data.held_out=20"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_PRED2(contains, trained.out, "accuracy");
  EXPECT_PRED2(contains, trained.out, "chance");
  EXPECT_EQ(run_stepwell({"eval", scratch.path("run")}).out, trained.out);
  EXPECT_EQ(run_stepwell({"eval", scratch.path("run"), "--length", "24"}).status, 0);
  EXPECT_PRED2(contains, run_stepwell({"train", "--help"}).out, "needle_distractors");
  expect_usage_error({"train", "--task", "neddle"}, "did you mean needle?");
  expect_usage_error({"train", "--task", "copy", "--set", "data.task_options.widht=3"}, "did you mean width?");
}

TEST(Cli, ReportsRuns) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  ASSERT_EQ(run_stepwell(tiny(scratch, "text-run")).status, 0);
  for (const char* run : {"a&b", "c"}) {
    const CommandResult trained =
        run_stepwell({"train", "--task", "regimes", "--out", scratch.path(run), "--set", "train.steps=6", "--set",
                      "train.length=12", "--set", "model.width=8", "--set", "data.held_out=5", "--set",
                      "train.evaluate_every=2", "--set", std::string("train.seed=") + (run[0] == 'c' ? "2" : "1")});
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  const CommandResult one = run_stepwell({"report", scratch.path("a&b")});
  EXPECT_EQ(one.out, scratch.path("a&b/report.html") + "\n") << one.err;
  const std::string page = io::read_file(scratch.path("a&b/report.html"), 1 << 24);
  EXPECT_EQ(io::WellFormed(page).fault(), "");
  for (const char* part : {"Training run a&amp;b", "task regimes", "bayes filter", "Training loss", "Gradient norm",
                           "Prediction", "task_options"}) {
    EXPECT_PRED2(contains, page, part);
  }
  const std::string out = scratch.path("both.html");
  const CommandResult both = run_stepwell({"report", scratch.path("a&b"), scratch.path("c"), "--out", out});
  EXPECT_EQ(both.out, out + "\n") << both.err;
  const std::string comparison = io::read_file(out, 1 << 24);
  EXPECT_EQ(io::WellFormed(comparison).fault(), "");
  for (const char* part : {"Comparison of 2", "train.seed", ">a&amp;b<", ">c<"})
    EXPECT_PRED2(contains, comparison, part);
  EXPECT_EQ(comparison.find("train.lr"), std::string::npos) << "does not differ";
  EXPECT_EQ(run_stepwell({"report", scratch.path("text-run"), scratch.path("c"), "--out", out}).status, 0);
  EXPECT_EQ(run_stepwell({"report", scratch.path("text-run")}).status, 0);
  expect_failure({"report", scratch.path("none")}, "holds no run");
  expect_usage_error({"report"}, "runs is required");
}

TEST(Cli, ReportsWhatTheMemoryBenchPrints) {
  const ScratchFolder scratch;
  scratch.write("gradient.json", run_stepwell({"bench", "--memory", "--op", "gradient", "--seeds", "2", "--json"}).out);
  scratch.write("made-up.json", R"([{"section": "cost", "title": "cost", "rows": [
    {"T": "24", "a: ms": [1, 2], "b: ms": [3, null], "a: MiB": [1]},
    {"T": "48", "a: ms": [2, 3], "b: ms": [], "a: MiB": [2]}]},
    {"section": "needle", "title": "needle", "rows": [{"by": "x & y", "T": [1, 0.5], "2T": [0.5], "seconds": [7]}]},
    {"section": "empty", "title": "nothing", "rows": []}])");
  const std::string out = scratch.path("page.html");
  for (const auto& [file, parts] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"gradient.json", {"tokens back", "unrolled gated cell", "class=\"area"}},
           {"made-up.json", {">MiB<", ">ms<", "1.5 ± 0.71", ">2T<", "x &amp; y", "whisker"}}}) {
    const CommandResult result = run_stepwell({"report", scratch.path(file), "--out", out});
    ASSERT_EQ(result.status, 0) << result.err;
    const std::string page = io::read_file(out, 1 << 24);
    EXPECT_EQ(io::WellFormed(page).fault(), "");
    for (const std::string& part : parts) EXPECT_PRED2(contains, page, part);
  }
  for (const char* other :
       {"{}", "[3]", R"([{"title": "t", "rows": [{}]}])", R"([{"title": "t", "rows": [{"a": [1]}]}])",
        R"([{"title": "t", "rows": [{"a": "x", "b": [1]}, {"a": "x"}]}])"}) {
    scratch.write("other.json", other);
    expect_failure({"report", scratch.path("other.json"), "--out", out}, "not what stepwell bench");
  }
}

TEST(Cli, ASavedStreamContinuesWithTheSameBytes) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  ASSERT_EQ(run_stepwell(tiny(scratch, "run")).status, 0);
  const std::string run = scratch.path("run"), stream = scratch.path("stream");
  for (const char* temperature : {"0", "1.5"}) {
    auto generate = [&](std::vector<std::string> more) {
      more.insert(more.begin(), {"generate", run, "--temperature", temperature});
      const CommandResult result = run_stepwell(more);
      EXPECT_EQ(result.status, 0) << result.err;
      return result.out;
    };
    const std::string whole = generate({"--prompt", "of the", "--bytes", "90"});
    const std::string first = generate({"--prompt", "of the", "--bytes", "33", "--save-stream", stream});
    const std::string second =
        generate({"--load-stream", stream, "--bytes", "27", "--save-stream", stream});  // over the old one
    const std::string third = generate({"--load-stream", stream, "--bytes", "30"});
    EXPECT_EQ(first + second + third, whole);
  }
  scratch.write("stream/session.json", "{\"position\": 3, \"pending\": [65]}");
  expect_failure({"generate", run, "--load-stream", stream}, "position");
}

TEST(Cli, AnInterruptedRunIsSavedAndGoesOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const ScratchFolder scratch;
    scratch.write("text", train::small_text());
    const CommandResult stopped =
        interrupt_stepwell(tiny(scratch, "run", "100000"), scratch.path("run/checkpoints/step-00000010"), signal);
    EXPECT_EQ(stopped.status, 130) << stopped.err;
    EXPECT_PRED2(contains, stopped.err, "interrupted after step ");
    EXPECT_PRED2(contains, stopped.err, "stepwell train --resume");
    const CommandResult measured = run_stepwell({"eval", scratch.path("run")});
    EXPECT_EQ(measured.status, 0) << measured.err;
  }
}

TEST(Cli, ResultsThatCannotBeWrittenAreAFailure) {
  const CommandResult result = run_stepwell_to_full_disk({"info"});
  EXPECT_EQ(result.status, 1);
  EXPECT_PRED2(contains, result.err, "stepwell info: [standard output] cannot write the results: No space left");
}

TEST(Cli, ARunMayNotLieAmongItsTexts) {
  const ScratchFolder scratch;
  scratch.write("notes/text", train::small_text());
  auto arguments = tiny(scratch, "notes/run");
  arguments[2] = scratch.path("notes");
  expect_failure(arguments, "name a folder outside it");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("notes/run")));
  arguments[4] = scratch.path("notes/.run");  // hidden files are not read
  EXPECT_EQ(run_stepwell(arguments).status, 0);
}

TEST(Cli, EvaluatesOnlyOnTheDataTrainedOn) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  ASSERT_EQ(run_stepwell(tiny(scratch, "run")).status, 0);
  scratch.write("text", train::small_text() + train::small_text());  // what was trained on is held out now
  expect_failure({"eval", scratch.path("run")}, "was trained on data with BLAKE3");
  EXPECT_EQ(run_stepwell({"eval", scratch.path("run"), "--text", scratch.path("text")}).status, 0);
}

TEST(Cli, TheColdestTemperatureTakesTheLikeliestByte) {
  const ScratchFolder scratch;
  scratch.write("text", train::small_text());
  ASSERT_EQ(run_stepwell(tiny(scratch, "run")).status, 0);
  const auto generated = [&](const char* temperature) {
    return run_stepwell({"generate", scratch.path("run"), "--temperature", temperature}).out;
  };
  const std::string likeliest = generated("0");
  for (const char* cold : {"1e-300", "1e-45", "1e-38", "1e-20"}) EXPECT_EQ(generated(cold), likeliest) << cold;
}

TEST(Cli, DistillsAMemory) {
  const ScratchFolder scratch;
  scratch.write("recipe.toml", R"(
[task]
name = "needle"
length = 16
[teacher]
window = 16
embed_width = 8
bound = "tanh"
[cell]
memory_width = 6
[train]
steps = 30
batch = 8
save_every = 10
[imitation]
rounds = 2
steps = 10
sequences = 4
[evaluate]
sequences = 4
times = [1, 2]
)");
  const std::string recipe = scratch.path("recipe.toml"), run = scratch.path("run");
  const CommandResult first = run_stepwell({"distill", recipe, "--out", run});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_PRED2(contains, first.out, "accuracy on 4 held-out sequences");
  EXPECT_PRED2(contains, first.err, "before imitation: drift");
  const std::string page = io::read_file(io::join_path(run, "report.html"), 1 << 24);
  EXPECT_EQ(io::WellFormed(page).fault(), "");
  EXPECT_PRED2(contains, page, "Rounds of imitation");
  const CommandResult json =
      run_stepwell({"distill", recipe, "--out", scratch.path("again"), "--threads", "1", "--json"});
  const Config report = io::parse_json(json.out, "report");
  EXPECT_EQ(report, io::read_json(io::join_path(run, "report.json")));
  EXPECT_EQ(*report.find("steps"), Config(50));
  EXPECT_EQ(run_stepwell({"distill", "--resume", run}).status, 0);  // has nothing left to do
  const CommandResult inspected = run_stepwell({"inspect", run});
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_PRED2(contains, inspected.out, "distillation.safetensors");
  expect_failure({"generate", run}, "holds no model: there is no config.json in");
  EXPECT_EQ(run_stepwell({"distill", recipe, "--set", "train.mode=bptt", "--out", scratch.path("bptt")}).status, 0);

  expect_usage_error({"distill"}, "give a recipe or --resume");
  expect_usage_error({"distill", recipe, "--resume", run}, "takes no recipe");
  expect_usage_error({"distill", recipe, "--set", "train.stesp=3"}, "did you mean steps?");
  expect_usage_error({"distill", recipe, "--set", "steps=3"}, "did you mean train.steps or imitation.steps?");
  expect_usage_error({"distill", recipe, "--set", "teacher.bound=none"}, "bound is not tanh");
  expect_usage_error({"distill", recipe, "--set", "imitation.ridge=0"}, "expected a number from 1e-09 to 1e+06");
  expect_usage_error({"distill", recipe, "--set", "cell.type=gatd"}, "expected one of gated, cloned, mamba");
  expect_failure({"distill", recipe, "--out", run}, "holds a run already");
}

TEST(Cli, BenchesMemories) {
  const CommandResult table = run_stepwell({"bench", "--memory", "--op", "gradient", "--seeds", "2"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_PRED2(contains, table.out, "unrolled gated cell");
  EXPECT_PRED2(contains, table.out, " ± ");
  const CommandResult json = run_stepwell({"bench", "--memory", "--op", "gradient", "--seeds", "1", "--json"});
  const Config tables = io::parse_json(json.out, "bench");
  // The teacher reaches the farthest token as well as the last one, the unrolled cell does not.
  const auto& rows = tables.as_array("bench")[0].find("rows")->as_array("rows");
  const auto norm = [](const Config& row, const char* column) {
    return row.find(column)->as_array(column)[0].as_double(column);
  };
  EXPECT_NEAR(norm(rows.back(), "teacher") / norm(rows.front(), "teacher"), 1, 0.1);
  EXPECT_LT(norm(rows.back(), "unrolled gated cell") / norm(rows.front(), "unrolled gated cell"), 1e-3);
  expect_usage_error({"bench", "--memory", "--op", "nothing"}, "there are cost, gradient");
}

TEST(Cli, InfoNamesVersionAndInstructionSet) {
  const CommandResult table = run_stepwell({"info"});
  EXPECT_EQ(table.status, 0);
  EXPECT_PRED2(contains, table.out, "instruction set");
  const Config facts = io::parse_json(run_stepwell({"info", "--json"}).out, "info");
  EXPECT_NE(facts.find("version"), nullptr);
}

}  // namespace
}  // namespace stepwell::cli
