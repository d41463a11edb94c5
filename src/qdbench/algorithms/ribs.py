"""Any pyribs scheduler under the ask/tell contract, and three of pyribs' algorithms ready to run.

def mine(problem: Problem, seed: int, *, batch_size: int = 64) -> RibsAlgorithm:
    archive = CVTArchive(…, solution_dtype=np.float32, extra_fields=EXTRA_FIELDS, seed=seed)
    return RibsAlgorithm(Scheduler(archive, [GaussianEmitter(archive, …, seed=seed)]))

pyribs and what it needs take seconds to import, so that happens only where an algorithm is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.map_elites import at_least
from qdbench.archives.evaluated import Evaluated
from qdbench.errors import BrokenAlgorithm, InvalidInput
from qdbench.policy import Parameters
from qdbench.seeds import derived_seed, stream

if TYPE_CHECKING:
    from ribs.archives import ArchiveBase
    from ribs.schedulers import BanditScheduler, Scheduler

EXTRA_FIELDS: dict[str, Any] = {"evaluation": ((), np.int64), "seed": ((), np.uint64)}
"""The `extra_fields` that every archive of a scheduler needs: elites remember their evaluation."""


class RibsAlgorithm:
    """A pyribs scheduler as an algorithm.

    An invalid solution never reaches an archive. Its emitter is told that it was not added, with the
    lowest improvement in the batch and the objective and measures of the least fit valid solution. If
    the whole batch is invalid, all improvements are equal, on which an evolution strategy restarts; as
    long as there is no elite to restart from, the batch is forgotten instead.

    A run resumes by telling the scheduler again what it was told: nothing of it is ever saved. So all its
    parts must take their randomness from a seed, as pyribs' own do.
    """

    packages = ("ribs", "numba")
    """The libraries whose versions a run records."""
    compiles = True
    """The first use of pyribs' evolution strategies compiles code, which a run does beforehand."""

    def __init__(self, scheduler: Scheduler | BanditScheduler) -> None:
        self._scheduler: Any = scheduler  # its private names are the same in all schedulers of pyribs
        _check_fields(scheduler.archive)
        _check_fields(scheduler.result_archive)

    def ask(self) -> Parameters:
        """Return what the emitters ask for, in float32."""
        if self._scheduler._last_called != "ask":
            # what the scheduler will pass on to its archives: the numbers that are evaluated, not the
            # float64 they were rounded from
            self._scheduler._cur_solutions = np.asarray(self._scheduler.ask(), np.float32)
        pending: Parameters = self._scheduler._cur_solutions
        return pending

    def tell(self, evaluated: Evaluated) -> None:
        """Tell archives and emitters; what they learn of invalid solutions is said above."""
        valid, fitness, descriptors = evaluated.valid, evaluated.fitness.copy(), evaluated.descriptors.copy()
        numbers, seeds = evaluated.evaluations[:, 0].copy(), evaluated.seeds[:, 0].copy()
        if valid.all():
            self._scheduler.tell(fitness, descriptors, evaluation=numbers, seed=seeds)
        elif valid.any() or not (self._scheduler.archive.empty or self._scheduler.result_archive.empty):
            least = np.argmin(np.where(valid, fitness, inf))
            fitness[~valid] = fitness[least] if valid.any() else 0
            descriptors[~valid] = descriptors[least] if valid.any() else 0
            numbers[~valid] = -1
            with self._guarded_archives():
                self._scheduler.tell(fitness, descriptors, evaluation=numbers, seed=seeds)
        else:
            self._scheduler._last_called = "tell"

    @contextmanager
    def _guarded_archives(self) -> Iterator[None]:
        usual = vars(self._scheduler).copy()
        single = usual["_add_mode"] == "single"
        try:
            self._scheduler._add_mode = "batch"
            self._scheduler._archive = _OnlyValid(usual["_archive"], single)
            if usual["_result_archive"] is not None:
                self._scheduler._result_archive = _OnlyValid(usual["_result_archive"], single)
            yield
        finally:
            for name in ("_add_mode", "_archive", "_result_archive"):
                setattr(self._scheduler, name, usual[name])

    def collection(self) -> Evaluated:
        """Return the elites of the result archive, or of the only one."""
        return _Elites(self._scheduler.result_archive)


class _Elites(Evaluated):
    """The elites of an archive. Solutions are fetched when first looked at: pyribs copies all of them."""

    def __init__(self, archive: ArchiveBase) -> None:
        elites = archive.data(["objective", "measures", "evaluation", "seed"])
        vars(self).update(
            fitness=elites["objective"],
            descriptors=elites["measures"],
            evaluations=elites["evaluation"][:, None],
            seeds=elites["seed"][:, None],
            _archive=archive,
        )

    def __getattr__(self, name: str) -> Any:
        if name != "solutions":
            raise AttributeError(name)
        solutions = vars(self)[name] = self._archive.data("solution").astype(np.float32, copy=False)
        return solutions


class _OnlyValid:
    """What a scheduler sees of an archive during `tell`: rows with evaluation -1 do not get through."""

    def __init__(self, archive: ArchiveBase, single: bool) -> None:
        self._archive, self._single = archive, single

    @property
    def empty(self) -> bool:
        return self._archive.empty

    def add(self, **data: NDArray[Any]) -> dict[str, NDArray[Any]]:
        valid = data["evaluation"] >= 0
        rows = {name: column[valid] for name, column in data.items()}
        answer: dict[str, Any]
        if self._single:
            each = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
            answers = [self._archive.add_single(**row) for row in each]
            answer = {name: np.array([a[name] for a in answers]) for name in (answers or [{}])[0]}
        else:
            answer = self._archive.add(**rows)
        if not valid.any():  # some archives have no answer to nothing
            answer = {"status": np.zeros(0, np.int32), "value": np.zeros(0)} | answer
        return {name: _ranked_last(name, column, valid) for name, column in answer.items()}


def _ranked_last(name: str, column: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[Any]:
    """Return an archive's answer for all rows; the invalid ones are not added, and no better than any."""
    worst = 0 if name == "status" or not len(column) else column.max() if name == "density" else column.min()
    full = np.full(len(valid), worst, column.dtype)
    full[valid] = column
    return full


def _check_fields(archive: ArchiveBase) -> None:
    try:
        found = {name: archive.dtypes[name] for name in archive.field_list}
    except NotImplementedError:  # as of DensityArchive, which keeps no solutions
        return
    exact = {"objective": np.float64, "measures": np.float64, "evaluation": np.int64, "seed": np.uint64}
    for name, kind in exact.items():
        if found.get(name) != kind:
            raise BrokenAlgorithm(
                f"the {type(archive).__name__} has no field {name!r} of {np.dtype(kind)}; build it with no "
                "dtype but solution_dtype=np.float32, and extra_fields=qdbench.algorithms.ribs.EXTRA_FIELDS"
            )


class RibsMapElites(RibsAlgorithm):
    """MAP-Elites as pyribs implements it: the same algorithm and options as map_elites.

    Source: Mouret and Clune 2015; variation: Vassiliades and Mouret 2018 (iso+line).
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        initial: int = 256,
        iso_sigma: float = 0.005,
        line_sigma: float = 0.05,
    ) -> None:
        from ribs.emitters import IsoLineEmitter
        from ribs.schedulers import Scheduler

        from qdbench.algorithms.ribs_parts import TaskGrid

        at_least("batch_size", batch_size, 1)
        at_least("initial", initial, 1)
        at_least("iso_sigma", iso_sigma, 0)
        at_least("line_sigma", line_sigma, 0)
        archive = TaskGrid(problem, seed)
        emitter = IsoLineEmitter(
            archive,
            iso_sigma=iso_sigma,
            line_sigma=line_sigma,
            initial_solutions=problem.random_solutions(initial, stream(seed, "initial")),
            batch_size=batch_size,
            seed=derived_seed(seed, "emitter"),
        )
        super().__init__(Scheduler(archive, [emitter]))


Strategy = Literal["sep_cma_es", "lm_ma_es", "cma_es"]  # cma_es: parameters × parameters numbers per emitter


class CmaMe(RibsAlgorithm):
    """Evolution strategies that seek new and improved cells; `batch_size` is split over the emitters.

    Source: Fontaine et al. 2020; strategies and defaults for large networks: Tjanaka et al. 2023.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 200,
        n_emitters: int = 5,
        sigma0: float = 0.02,
        es: Strategy = "sep_cma_es",
    ) -> None:
        from ribs.schedulers import Scheduler

        from qdbench.algorithms.ribs_parts import TaskGrid, evolution_strategies

        archive = TaskGrid(problem, seed)
        rules = {"ranker": "2imp", "selection_rule": "filter", "restart_rule": "no_improvement"}
        emitters = evolution_strategies(archive, problem, seed, batch_size, n_emitters, sigma0, es, rules)
        super().__init__(Scheduler(archive, emitters))


class CmaMae(RibsAlgorithm):
    """CMA-ME whose cells raise their threshold slowly; the best of every cell are kept apart.

    `threshold_min` is where thresholds start; none means the low end of the task's fitness bounds.

    Source: Fontaine and Nikolaidis 2023; strategies and defaults for large networks: Tjanaka et al. 2023.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 200,
        n_emitters: int = 5,
        sigma0: float = 0.02,
        es: Strategy = "sep_cma_es",
        learning_rate: float = 0.001,
        threshold_min: float | None = None,
    ) -> None:
        from ribs.schedulers import Scheduler

        from qdbench.algorithms.ribs_parts import TaskGrid, evolution_strategies

        if not 0 <= learning_rate <= 1:
            raise InvalidInput(f"learning_rate is {learning_rate}; give 0 to 1")
        if threshold_min is None:
            threshold_min = nextafter(problem.fitness_bounds[0], -inf)  # the low end itself still enters
        archive = TaskGrid(problem, seed, learning_rate=learning_rate, threshold_min=threshold_min)
        rules = {"ranker": "imp", "selection_rule": "mu", "restart_rule": "basic"}
        emitters = evolution_strategies(archive, problem, seed, batch_size, n_emitters, sigma0, es, rules)
        super().__init__(Scheduler(archive, emitters, result_archive=TaskGrid(problem, seed)))
