"""The ready-made schedules parse, and the command of each composes."""

import configparser
import fcntl
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import ray
import yaml
from hydra import compose, initialize_config_dir

import pipelines.rescore_settings  # noqa: F401 - registers the schema that conf/rescore.yaml names
from pipelines.config import CONF, plain

NIGHTLY = Path(__file__).resolve().parent.parent / "cluster" / "nightly"


def manifests():
    return {one["kind"]: one for one in yaml.safe_load_all((NIGHTLY / "kubernetes.yaml").read_text())}


def ray_job():
    return yaml.safe_load(manifests()["ConfigMap"]["data"]["rayjob.yaml"])


def unit(name):
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.optionxform = str
    parser.read_string((NIGHTLY / name).read_text())
    return parser


def cron_line():
    lines = (NIGHTLY / "crontab").read_text().splitlines()
    (line,) = [line for line in lines if re.match(r"[\d*]", line)]
    return line.split(maxsplit=5)


COMMANDS = {
    "cron": cron_line()[5],
    "systemd": unit("rescore.service")["Service"]["ExecStart"],
    "kubernetes": ray_job()["spec"]["entrypoint"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_composes(name):
    words = shlex.split(COMMANDS[name].split("&&")[-1].split("||")[0])
    place = words.index("pipelines.rescore")
    assert words[place - 2].endswith("python") and words[place - 1] == "-m"
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = plain(compose("rescore", overrides=words[place + 1 :]))
    assert settings.cluster.num_gpus == 4 and settings.store.root != "store"
    assert (settings.cluster.address == "auto") == (name == "kubernetes"), (
        "a RayJob runs on the cluster it started"
    )


def test_all_three_start_at_three_and_a_night_is_not_overtaken():
    assert cron_line()[:5] == ["0", "3", "*", "*", "*"] and "flock -n" in COMMANDS["cron"]
    assert unit("rescore.timer")["Timer"]["OnCalendar"].endswith("03:00:00")
    assert unit("rescore.service")["Service"]["Type"] == "oneshot", (
        "systemd starts no second one while it runs"
    )
    cron_job = manifests()["CronJob"]["spec"]
    assert cron_job["schedule"] == "0 3 * * *" and cron_job["concurrencyPolicy"] == "Forbid"


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock, of util-linux, is not on this machine")
def test_a_night_that_finds_the_last_one_at_work_says_so(tmp_path):
    lock = tmp_path / "lock"
    command = re.sub(r"\S+python .*?(?= \|\|)", "true", COMMANDS["cron"].split("&& ")[1])
    command = command.replace("/tmp/rescore.lock", str(lock))
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        busy = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        assert busy.stdout == "rescore: status 75 (75: the night before is still at work)\n"
    assert subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout == ""


def test_the_cron_job_may_create_the_ray_job_that_it_mounts():
    found = manifests()
    (rule,) = found["Role"]["rules"]
    assert rule == {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["create"]}
    assert found["RoleBinding"]["roleRef"]["name"] == found["Role"]["metadata"]["name"]
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    assert volume["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert container["args"][-1] == f"{container['volumeMounts'][0]['mountPath']}/rayjob.yaml"


def test_the_ray_job_starts_the_ray_that_is_installed_with_all_four_cards_and_ends():
    job = ray_job()
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob") and "generateName" in job["metadata"]
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["rayVersion"].rsplit(".", 1)[0] == ray.__version__.rsplit(".", 1)[0]
    (container,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "4"
    # The weights of scorers=paper come from the claim that the big cluster mounts, at the hub's cache.
    pod = cluster["headGroupSpec"]["template"]["spec"]
    claims = {
        one["name"]: one["persistentVolumeClaim"]["claimName"]
        for one in pod["volumes"]
        if "emptyDir" not in one
    }
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    (shared,) = list(yaml.safe_load_all((NIGHTLY.parent / "kuberay.yaml").read_text()))
    (node,) = shared["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert claims == {"weights": "weights"} and {**mounts, "runs": "/app/runs"} == {
        one["name"]: one["mountPath"] for one in node["volumeMounts"]
    }
    assert job["spec"]["shutdownAfterJobFinishes"] is True
    assert job["spec"]["backoffLimit"] == 0, "a second try after a drift would find none"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_understands_the_units(tmp_path):
    text = (
        (NIGHTLY / "rescore.service")
        .read_text()
        .replace("/opt/audio-reasoning-eval/.venv/bin/python", "/bin/sh")
    )
    (tmp_path / "rescore.service").write_text(text.replace("/opt/audio-reasoning-eval", "/"))
    shutil.copy(NIGHTLY / "rescore.timer", tmp_path)
    units = [str(tmp_path / name) for name in ("rescore.service", "rescore.timer")]
    told = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
