"""What a MUGEN run is going to do: its strategies, the generations they share, and whether the model can take them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from operators.audio import ProbeAudio
from operators.base import Spec, Stage
from operators.lalms.asking import Lalm
from operators.lalms.recorded import Recorded
from operators.mugen.presentation import GenerationSet, Strategy, generation_set, scalable
from pipelines.config import Cluster, ConfigError, build
from pipelines.execution import resources
from pipelines.mugen_phases import fan_out, usable
from pipelines.mugen_settings import MugenEval
from pipelines.preflight import check_counts, sized
from pipelines.responses import load_questions


class MugenPlan(NamedTuple):
    """What a run asks: which items, of which model, in which generations.

    voting: the model with the settings of the votes, often `model` itself. sets: each with its number of trials.
    counts: numbers of candidates, None for all.
    """

    items: pa.Table
    model: Any
    voting: Any
    strategies: dict[str, Strategy]
    sets: dict[GenerationSet, int]
    counts: list[int | None]
    seed: int

    @property
    def separate_voting(self) -> bool:
        """Whether votes are generations of their own."""
        return self.voting != self.model


def read_plan(settings: MugenEval) -> MugenPlan:
    """The plan that a configuration stands for. Raises ConfigError, or TableError, for one that cannot run."""
    benchmark, model = build(settings.benchmark, "benchmark"), as_asked(build(settings.model, "model"))
    strategies = read_strategies(settings)
    voting = model if isinstance(model, Recorded) else voting_model(model, settings.voting)
    model, voting = seeded(model, settings.seed), seeded(voting, settings.seed)
    sets = sets_of(strategies, settings.n_trials, voting != model)
    counts = candidate_counts(settings.n_candidates)
    items = load_items(benchmark)
    check_candidates(items, counts)
    check_clips(model, items, counts)
    model, voting = (sized(one, clip_needs(items, counts)) for one in (model, voting))
    warn_of_greedy_votes(voting, sets)
    return MugenPlan(items, model, voting, strategies, sets, counts, settings.seed)


def as_asked(model: Any) -> Any:
    """`model` without a prompt of its own: a strategy's instruction is the whole text of a question."""
    return dataclasses.replace(model, prompt=None) if isinstance(model, Lalm) else model


def read_strategies(settings: MugenEval) -> dict[str, Strategy]:
    """The strategies of a run by name. Raises ConfigError for none, or for one that cannot be read."""
    if not settings.strategy:
        raise ConfigError("choose a strategy: strategy=direct, or several: strategy=direct,sc,apsc")
    if settings.n_trials < 1:
        raise ConfigError(f"config key n_trials: at least 1 generation is needed, not {settings.n_trials}")
    target = {"_target_": "operators.mugen.presentation.Strategy"}
    return {name: build(target | dict(body), f"strategy.{name}") for name, body in settings.strategy.items()}


def load_items(benchmark: Any) -> pa.Table:
    """The items of a benchmark whose options are clips (MUGEN_ITEM). Raises ConfigError for another one."""
    items = load_questions(benchmark)
    if "n_reference" not in items.column_names:
        raise ConfigError(
            f"the options of benchmark {type(benchmark).__name__} are texts, not clips: score it with pipelines.aria_eval, "
            "or choose benchmark=mugen"
        )
    return items


def candidate_counts(given: Any) -> list[int | None]:
    """`n_candidates` as a list; [None] for all candidates, outside a scaling study. Raises ConfigError."""
    listed = given if isinstance(given, (list, tuple)) else [given]
    if listed == [None]:
        return [None]
    if not listed or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 2 for n in listed):
        raise ConfigError(
            f"config key n_candidates: null, a number or a list of numbers from 2 up, not {given!r}"
        )
    return sorted(set(listed))


def sets_of(
    strategies: Mapping[str, Strategy], n_trials: int, separate_voting: bool
) -> dict[GenerationSet, int]:
    """The generations that the strategies need together, each set with its number of trials."""
    sets: dict[GenerationSet, int] = {}
    for strategy in strategies.values():
        drawn = generation_set(strategy, separate_voting)
        sets[drawn] = max(sets.get(drawn, 1), n_trials if strategy.vote else 1)
    return sets


def voting_model(model: Spec, settings: Mapping[str, float | None]) -> Spec:
    """`model` with the sampling settings of the votes: the given ones, else its own voting temperature, else itself."""
    given = {name: value for name, value in settings.items() if value is not None}
    own = getattr(model, "voting_temperature", None)
    given = given if own is None else {"temperature": own, **given}
    if unknown := [name for name in given if not hasattr(model, name)]:
        raise ConfigError(f"voting.{unknown[0]}: {type(model).__name__} has no setting {unknown[0]!r}")
    return dataclasses.replace(model, **given) if given else model


def seeded(model: Any, seed: int) -> Any:
    """`model`, sampling by the run's seed where it has none of its own (0). A greedy model does not depend on one: it stays
    what it is, and what it said before is found in the store."""
    if getattr(model, "seed", None) == 0 and model.temperature != 0:
        return dataclasses.replace(model, seed=seed)
    return model


def by_model(planned: MugenPlan) -> Iterable[tuple[str, Any, dict[GenerationSet, int]]]:
    """(stage name, Spec, its sets): sets of one Spec are generated together, so that weights load once and each clip
    is encoded once for all of them."""
    for stage, spec, is_voting in (
        ("generate", planned.model, False),
        ("generate_voting", planned.voting, True),
    ):
        if drawn := {one: n for one, n in planned.sets.items() if one.voting == is_voting}:
            yield stage, spec, drawn


def check_candidates(items: pa.Table, counts: Sequence[int | None]) -> None:
    """Refuse a scaling study with no item for any of its numbers of candidates. Raises ConfigError.

    A number that some items could never have is said where others can be asked.
    """
    kept = usable(items)
    idle = [n for n in counts if n is not None and not any(scalable(item, n) for item in kept)]
    if not kept or not idle:
        return
    most = max((len(i["audio_uris"]) - i["n_reference"] for i in kept if not i["ranking"]), default=0)
    told = (
        f"no item has {' or '.join(map(str, idle))} candidates (ranking tasks left out, the most is {most})"
    )
    if len(idle) == len(counts):
        raise ConfigError(f"config key n_candidates: {told}")
    print(f"note: n_candidates: {told}; nothing is asked there", file=sys.stderr)


def check_clips(model: Any, items: pa.Table, counts: Sequence[int | None]) -> None:
    """Refuse, before anything starts, a model that cannot take all clips of an item. Raises ConfigError."""
    advice = "choose another model or fewer candidates with n_candidates"
    check_counts(model, clip_needs(items, counts), advice)


def clip_needs(items: pa.Table, counts: Sequence[int | None]) -> Iterable[tuple[int, str]]:
    """(clips of a prompt, item id) of everything that is asked."""
    for item in usable(items):
        for n in counts:
            if n is None or scalable(item, n):
                need = len(item["audio_uris"]) if n is None else item["n_reference"] + n
                yield need, item["item_id"]


def warn_of_greedy_votes(voting: Any, sets: Mapping[GenerationSet, int]) -> None:
    """Ten greedy answers to one presentation are one answer: say so, since only the user knows whether it was meant."""
    greedy = getattr(voting, "temperature", None) == 0
    if greedy and any(n > 1 and not drawn.permute for drawn, n in sets.items()):
        print(
            "note: the model decodes greedily, so all trials in the original order are alike and SC equals a single "
            "answer; set voting.temperature (MUGEN: 0.2 for Qwen2.5-Omni, 1 for Gemini 3 Pro)",
            file=sys.stderr,
        )


def generating(planned: MugenPlan, cluster: Cluster) -> list[Stage]:
    """The stages that ask the model."""
    return [Stage(name, spec, resources(cluster.generate)) for name, spec, _ in by_model(planned)]


def stages(planned: MugenPlan, cluster: Cluster) -> list[tuple[Stage, int]]:
    """The stages of this run with the rows each would look at; none for recorded answers, which need no Ray."""
    if isinstance(planned.model, Recorded):
        return []
    kept = usable(planned.items)
    chain: list[tuple[Stage, int]] = [
        (Stage("audio", ProbeAudio(), resources(cluster.audio)), planned.items.num_rows)
    ]
    for stage, (_, _, drawn) in zip(generating(planned, cluster), by_model(planned), strict=True):
        chain.append((stage, fan_out(kept, drawn, planned.counts, planned.seed).num_rows))
    return chain
