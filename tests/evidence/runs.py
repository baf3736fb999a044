"""The runs behind docs/evidence.md: for each, the command and the kind of its output."""
import dataclasses

GOLDEN = "build/release/tests/golden/skillet_golden"
CONFORMANCE = "build/release/tests/conformance/"
MODELS = "../shared/models"
PEER_SETS = ("teflon", "gen", "ops", "edge", "rand", "coral")


@dataclasses.dataclass
class Run:
    command: list
    kind: str = "json"  # or "lines": text of which the page shows lines with a number
    shown: str = ""  # the command as a person types it; empty: as executed
    environment: dict = dataclasses.field(default_factory=dict)
    fails: bool = False  # whether exit code 1 is a valid result

    def text(self):
        if self.shown:
            return self.shown
        return " ".join([f"{name}={value}" for name, value in self.environment.items()] + self.command)


def golden(chip, *options):
    return Run([GOLDEN, chip, *options, "--json"], shown=" ".join(["./x golden", chip, *options]))


def network(model, picture, labels, chip):
    options = [f"{MODELS}/{model}.tflite", "--image", f"{MODELS}/{picture}"]
    options += ["--labels", f"{MODELS}/{labels}"] if labels else []
    options += ["--device", f"sim:{chip}", "--partition", "all", "--compare=layers"]
    return Run(["build/release/src/tools/skillet", "run", *options, "--json"], shown=" ".join(["skillet run", *options]))


def whole_network(model, chip):
    options = [f"{MODELS}/{model}.tflite", "--image", *(f"{MODELS}/{picture}.bmp" for picture in PICTURES)]
    options += ["--device", f"sim:{chip}", "--partition", "all", "--compare"]
    return Run(["build/release/src/tools/skillet", "run", *options, "--json"], shown=" ".join(["skillet run", *options]))


def weights(model, chip):
    options = [f"{MODELS}/{model}.tflite", "--device", f"sim:{chip}", "--report"]
    return Run(["build/release/src/tools/skillet", "compile", *options, "--json"],
               shown=" ".join(["skillet compile", *options]))


def graphs(test, count):
    return Run([f"{CONFORMANCE}{test}"], "lines", environment={"SKILLET_RANDOM_GRAPHS": str(count)})


def costs(chip):
    """Needs a build with -DSKILLET_BENCH=ON."""
    models = [f"{MODELS}/{row[0]}.tflite" for row in NETWORKS]
    return Run(["build/release/bench/skillet_cost_bench", chip, *models], "lines",
               shown=f"skillet_cost_bench {chip} {MODELS}/*.tflite")


def forged(chip):
    options = ["--seed", str(FORGED_SEED), "--seconds", str(FORGED_SECONDS), chip]
    return Run(["build/release/tests/soak/forged_programs_soak", *options], "lines")


def peer(chip):
    sets = [word for name in PEER_SETS for word in ("--set", name)]
    return Run(["./x", "peer", chip, *sets, "--json"], shown=" ".join(["./x peer", chip, *sets]), fails=True)


CHIPS = {"a311d": "A311D", "imx8mp": "i.MX 8M Plus", "s905d3": "S905D3", "rk3588": "RK3588",
         "rk3576": "RK3576"}
FORGED_SEED, FORGED_SECONDS = 31000, 25  # of CPU time, for each chip
PICTURES = ("cat", "bird", "grace_hopper")
NETWORKS = [
    ("mobilenet_v1_0.25_128_quant", "grace_hopper.bmp", "imagenet_labels.txt"),
    ("mobilenet_v1_0.5_160_quant", "grace_hopper.bmp", "imagenet_labels.txt"),
    ("mobilenet_v1_1.0_224_quant", "grace_hopper.bmp", "imagenet_labels.txt"),
    ("mobilenet_v2_1.0_224_quant", "grace_hopper.bmp", "imagenet_labels.txt"),
    ("tf2_mobilenet_v2_1.0_224_ptq", "grace_hopper.bmp", "imagenet_labels.txt"),
    ("deeplabv3_mnv2_dm05_pascal_quant", "bird.bmp", ""),
    ("movenet_single_pose_lightning_ptq", "squat.bmp", ""),
]

RUNS = {
    "random-graphs": graphs("random_graphs_test", 2000),
    "tunings": graphs("tunings_test", 2000),
    "tamper": Run(["build/release/tests/golden/golden_tamper_test", "--gtest_also_run_disabled_tests",
                   "--gtest_filter=*EveryBitIsSeen"], "lines"),
    "costs-rk3588": costs("rk3588"),
    "peer-a311d": peer("a311d"),
    "peer-imx8mp": peer("imx8mp"),
}
for one in CHIPS:
    RUNS[f"golden-{one}"] = golden(one)
    RUNS[f"forged-{one}"] = forged(one)
    RUNS[f"proven-{one}"] = golden(one, "--tuning", "proven")
    RUNS[f"switches-{one}"] = golden(one, "--switches")
    RUNS[f"simulate-{one}"] = golden(one, "--simulate")
    for row in NETWORKS:
        RUNS[f"whole-{row[0]}-{one}"] = whole_network(row[0], one)
        RUNS[f"weights-{row[0]}-{one}"] = weights(row[0], one)
        RUNS[f"network-{row[0]}-{one}"] = network(*row, one)
