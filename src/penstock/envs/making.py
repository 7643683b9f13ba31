"""Makes one environment from whatever a person names it by: an id, module:Name, a class, a factory, a lambda.

Knows Gymnasium's registry. Does not step, reset or judge what it makes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.core.errors import Refused
from penstock.core.loading import find_in_working_directory, load_object
from penstock.envs.adapters import adapted, own_form, without_ours
from penstock.envs.faults import failures
from penstock.envs.quiet import quiet, send_mujoco_warnings_through_python
from penstock.envs.refusals import cannot_make, missing_module, module_that_registers, unknown_environment
from penstock.envs.settings import EnvSettings

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

Source = str | Callable[..., Any]
Wrap = str | Callable[[Any], Any]


@dataclass(frozen=True)
class EnvironmentMaker:
    """Calling it makes one environment; pickling it carries along what is defined in the person's own script."""

    source: Source
    arguments: dict[str, Any] = field(default_factory=dict)
    wrappers: tuple[Wrap, ...] = ()

    @classmethod
    def of(cls, settings: EnvSettings, source: Source | None = None) -> EnvironmentMaker:
        """From settings; `source`, where there is one, is the person's own class or factory."""
        chosen = settings.id if source is None else source
        if not isinstance(chosen, str) and not callable(chosen):
            raise Refused(
                f"an environment is an id, a class or a function that makes one, not an instance of "
                f"{type(chosen).__name__}; pass for example `lambda: {type(chosen).__name__}(...)`"
            )
        if not chosen:
            raise Refused("no environment was named; name one, as in: penstock train CartPole-v1")
        return cls(chosen, dict(settings.arguments), tuple(settings.wrappers))

    @property
    def name(self) -> str:
        """What reports call it."""
        if isinstance(self.source, str):
            return self.source
        name = str(getattr(self.source, "__qualname__", type(self.source).__qualname__))
        return name.rpartition("<locals>.")[2].strip("<>")

    def __call__(self) -> Any:
        """Make one; every way in which that can fail is one line."""
        with quiet():
            try:
                return self._wrapped(self._made())
            except failures() as error:
                raise cannot_make(self.name, error) from error

    def vector(self, num_lanes: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        """The environment's own vectorised form; only where `vector_entry_point` says there is one."""
        import gymnasium

        with quiet():
            try:
                found = self.registered()
                if found is None:
                    raise Refused(f"environment '{self.name}' is not registered and has no vector form")
                own = own_form(found, self.arguments)
                if own is not None:
                    return own.vector(num_lanes)
                mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
                return gymnasium.make_vec(found, num_envs=num_lanes, vectorization_mode=mode, **self.arguments)
            except failures() as error:
                raise cannot_make(self.name, error) from error

    def vector_entry_point(self) -> bool:
        """Whether a vectorised form exists that is the same environment."""
        found = self.registered()
        if found is None or found.vector_entry_point is None or found.additional_wrappers or self.wrappers:
            return False
        if found.namespace == "ALE":
            return own_form(found, self.arguments) is not None
        limit = self.arguments.get("max_episode_steps", found.max_episode_steps)
        return limit is None or limit > 0  # -1 is Gymnasium's "no limit", which a vector form takes for a limit of -1

    def registered(self) -> EnvSpec | None:
        """The registry's entry; None for what is called rather than looked up."""
        if not isinstance(self.source, str):
            return None
        from gymnasium.envs.registration import registry

        module, _, name = self.source.rpartition(":")
        _import_registrations(module, name)
        if name not in registry and module:
            return None
        if name not in registry and "/" not in name and "-v" not in name:
            name = _newest(name, registry) or name
        if name not in registry:
            raise unknown_environment(name, registry)
        return registry[name]

    def _made(self) -> Any:
        found = self.registered()
        if found is not None:
            import gymnasium
            from gymnasium.envs.registration import load_env_creator

            if isinstance(found.entry_point, str):
                load_env_creator(found.entry_point)  # what it imports has to be there before it can be quietened
                send_mujoco_warnings_through_python()
            own = own_form(found, self.arguments)
            if own is not None:
                return own.single()
            arguments = without_ours(found, self.arguments)
            return adapted(found, gymnasium.make(found, disable_env_checker=True, **arguments))
        factory = load_object(self.source) if isinstance(self.source, str) else self.source
        return factory(**self.arguments)

    def _wrapped(self, environment: Any) -> Any:
        for wrapper in self.wrappers:
            wrap = load_object(wrapper) if isinstance(wrapper, str) else wrapper
            environment = wrap(environment)
        return environment

    def parts(self) -> list[tuple[str, Any]]:
        """What travels to the processes that make it, and what reports call that."""
        named = f"environment '{self.name}'"
        wrappers = [(f"wrapper '{getattr(wrap, '__qualname__', wrap)}'", wrap) for wrap in self.wrappers]
        arguments = [(f"argument '{name}' of {named}", value) for name, value in self.arguments.items()]
        return [(named, self.source), (named, self._local_registration()), *arguments, *wrappers]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import cloudpickle

        parts = (self.source, self.arguments, self.wrappers, self._local_registration())
        return _unpacked, (cloudpickle.dumps(parts),)

    def _local_registration(self) -> EnvSpec | None:
        """The registry's entry where the script registered it itself: other processes never run that script."""
        if not isinstance(self.source, str) or "gymnasium" not in sys.modules:
            return None
        from gymnasium.envs.registration import load_env_creator, registry

        found = registry.get(self.source)
        if found is None:
            return None
        if isinstance(found.entry_point, str) and found.entry_point.startswith("__main__:"):
            creator: Any = load_env_creator(found.entry_point)  # the class itself, which travels by value
            return replace(found, entry_point=creator)
        return found if callable(found.entry_point) else None


def _unpacked(packed: bytes) -> EnvironmentMaker:
    import cloudpickle

    source, arguments, wrappers, local = cloudpickle.loads(packed)
    if local is not None:
        from gymnasium.envs.registration import registry

        registry.setdefault(local.id, local)
    return EnvironmentMaker(source, arguments, wrappers)


def _import_registrations(module: str, name: str) -> None:
    """Import what makes the id exist: our own environments, the module a person names, the extra a namespace needs."""
    from gymnasium.envs.registration import registry

    from penstock.envs.known.registration import register_known

    register_known()
    if module:
        _import_own(module, name)
    needed = module_that_registers(name)
    if name not in registry and needed is not None:
        try:
            importlib.import_module(needed)
        except ModuleNotFoundError as error:
            raise missing_module(name, error.name or needed) from error


def _import_own(module: str, name: str) -> None:
    find_in_working_directory()
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Refused(f"cannot import '{module}' of '{module}:{name}': no module named '{error.name}'") from error


def _newest(name: str, registry: dict[str, EnvSpec]) -> str | None:
    """CartPole stands for its highest version, as in Gymnasium."""
    versions = [entry for entry in registry.values() if entry.name == name and entry.namespace is None]
    return max(versions, key=lambda entry: entry.version or 0).id if versions else None
