"""QKVL, the language of the QKV machine (64): a program as the JSON of App. J, and as frozen dataclasses.

For the query, key and value structure of every cell, a production gives each register's *source*: the value that it is
set to. In the JSON a source is

| source | means |
|---|---|
| `"s"`, `"p@pos_increment"` | the cell's register with that short name; its image under a function |
| `"XQ"` | a constant |
| `["!=", source]` | in a query or key: matches all other values |
| `["in", "A", "B"]`, `["not in", "A", "B"]` | in a query or key: matches any (none) of these constants |
| `["in", "s"]` | the constant `s`, if `s` is also a register's short name |

A layer of several productions, (90a), is `{"layer_comment": ..., "heads": [production, ...]}`; `compile.merge_heads`
makes it.

Besides App. J's keys the JSON has `initial`, `prompt`, `values`, `stop`, `functions` and a repeat block's `bound`. All
of these, and `layer_comment`, `causal_attn` and `right_match`, are optional in the input.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.syntax import DEFAULT_BOUND
from hf_mech.programs.psl.values import is_built_in

PRIME = "`"
"""The suffix of a short name if a query or key uses the register a second time (App. K.1)."""

_MOST_PRIMES = 8
_PRIMED = re.compile(rf"{PRIME}+|{PRIME}[1-9][0-9]*")

JSONSource = str | list[str]
Instructions = Mapping[str, JSONSource]
"""Register to be set -> source; App. J calls it a registers-dictionary."""

_DEEPEST = 64
_ROLES = ("symbol", "position", "output", "parse", "eop")


def primed(short: str, times: int) -> str:
    """The target of a register's further uses in a query and key: its short name and a backtick for each.

    From the ninth on, one backtick and their number.

    Numbers keep the names short: a production may have thousands of tests of one register.
    """
    return short + PRIME * times if times <= _MOST_PRIMES else f"{short}{PRIME}{times}"


@dataclass(frozen=True)
class Source:
    """The source of a register of a query, key or value (64): a register's value or its image, or constants.

    Args:
        register: short name of the register that is read; None for constants.
        function: the function applied to its value, if any.
        constants: the constants: one, or the constants of `in` and `not in`.
        several: written with `in` or `not in`.
        negated: matches all values but these (62d-iv).
    """

    register: str | None = None
    function: str | None = None
    constants: tuple[str, ...] = ()
    several: bool = False
    negated: bool = False

    @property
    def plain(self) -> bool:
        """Whether it is one value, not a condition on values."""
        return not (self.several or self.negated)

    def to_json(self, short_names: Collection[str]) -> JSONSource:
        """The form of App. J; a constant that equals a register's short name is written as `["in", constant]`."""
        if self.several:
            return ["not in" if self.negated else "in", *self.constants]
        if self.register is not None:
            text = self.register + (f"@{self.function}" if self.function else "")
        else:
            text = self.constants[0]
            if text.split("@")[0] in short_names:
                return ["not in" if self.negated else "in", text]
        return ["!=", text] if self.negated else text

    @classmethod
    def from_json(cls, source: Any, short_names: Collection[str], path: str) -> Source:
        """Reads a source.

        Raises:
            ProgramsError: it has none of the forms of App. J.
        """
        if isinstance(source, str):
            name, mark, function = source.partition("@")
            if name not in short_names:
                return cls(constants=(source,))
            if mark and not function:
                raise ProgramsError(f"{path}: expected a function's name after `@`; got {source!r}")
            return cls(register=name, function=function or None)
        if not isinstance(source, list) or not source or not all(isinstance(item, str) for item in source):
            raise ProgramsError(f"{path}: expected a string or a list of strings; got {source!r}")
        operator, *operands = source
        if operator == "!=" and len(operands) == 1:
            operand = cls.from_json(operands[0], short_names, path)
            return cls(operand.register, operand.function, operand.constants, negated=True)
        if operator in ("in", "not in"):
            return cls(constants=tuple(operands), several=True, negated=operator == "not in")
        raise ProgramsError(
            f"{path}: expected a string, ['!=', register or constant], ['in', constants ...] or "
            f"['not in', constants ...]; got {source!r}"
        )


@dataclass(frozen=True)
class QKVLProduction:
    """A layer: the instructions that make a cell's query, key and value structures from its input structure (62d-i)."""

    q: Instructions
    k: Instructions
    v: Instructions = field(default_factory=dict)
    causal_attn: bool = False
    right_match: bool = False
    layer_comment: str = ""

    def to_json(self) -> dict[str, Any]:
        """App. J's production-dictionary."""
        return {
            "layer_comment": self.layer_comment,
            "causal_attn": self.causal_attn,
            "right_match": self.right_match,
            "weights": {"q": _copied(self.q), "k": _copied(self.k), "v": _copied(self.v)},
        }


@dataclass(frozen=True)
class QKVLHeads:
    """A layer of several productions, (90a): all read the layer's input, and no two set the same register of a cell."""

    heads: tuple[QKVLProduction, ...]
    layer_comment: str = ""

    def to_json(self) -> dict[str, Any]:
        """Our own addition to App. J; programs without such layers have none."""
        return {"layer_comment": self.layer_comment, "heads": [head.to_json() for head in self.heads]}


@dataclass(frozen=True)
class QKVLRepeat:
    """Layers that run until they change nothing (`until` is None), or until some query matches some key of `until`.

    The production in `until` sets no values; it is never causal.
    """

    weights: tuple[QKVLBlock, ...]
    until: QKVLProduction | None = None
    bound: int = DEFAULT_BOUND
    layer_comment: str = ""

    def to_json(self) -> dict[str, Any]:
        """App. J's repeat-dictionary, with the bound."""
        return {
            "layer_comment": self.layer_comment,
            "until": {} if self.until is None else {"q": _copied(self.until.q), "k": _copied(self.until.k)},
            "bound": self.bound,
            "weights": [block.to_json() for block in self.weights],
        }


QKVLBlock = QKVLProduction | QKVLHeads | QKVLRepeat


@dataclass(frozen=True)
class QKVLProgram:
    """A QKVL program: the keys of App. J's JSON, and ours (see the module's text).

    `register_map` maps names to short names. `system_map` and `watch_list` use names; `initial`, `prompt`, `values` and
    all instructions use short names.
    """

    register_map: Mapping[str, str]
    constants_map: Mapping[str, str]
    system_map: Mapping[str, str]
    weights: tuple[QKVLBlock, ...]
    watch_list: tuple[str, ...] = ()
    initial: Mapping[str, str] = field(default_factory=dict)
    prompt: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    functions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def productions(self) -> Iterator[QKVLProduction]:
        """Every production in order, including those in repeat blocks and heads."""
        for layer in self.layers:
            yield from layer.heads if isinstance(layer, QKVLHeads) else (layer,)

    @property
    def layers(self) -> Iterator[QKVLProduction | QKVLHeads]:
        """Every layer in order, including those in repeat blocks."""
        yield from _layers(self.weights)

    @property
    def registers(self) -> tuple[str, ...]:
        """The short names of all registers: first the state's, then the primed ones of queries and keys, sorted."""
        conditions = [*self.productions, *_untils(self.weights)]
        targets = {target for condition in conditions for target in condition.q}
        declared = tuple(self.register_map.values())
        return (*declared, *sorted(targets - set(declared)))

    def to_json(self) -> dict[str, Any]:
        """The program as plain dicts and lists; they share no data with the program."""
        return {
            "register_map": dict(self.register_map),
            "constants_map": dict(self.constants_map),
            "system_map": dict(self.system_map),
            "watch_list": list(self.watch_list),
            "initial": dict(self.initial),
            "prompt": list(self.prompt),
            "values": {name: list(values) for name, values in self.values.items()},
            "stop": list(self.stop),
            "functions": {name: dict(table) for name, table in self.functions.items()},
            "weights": [block.to_json() for block in self.weights],
        }

    @classmethod
    def from_json(cls, json: Any) -> QKVLProgram:
        """Reads the output of `to_json`, or App. J's own form.

        Raises:
            ProgramsError: a field is missing, unknown or of the wrong type; the message names its path.
        """
        return _Reader(json).program()


def _unprimed(target: str) -> str:
    """The short name of a target; the target itself if its suffix is no prime."""
    short, mark, rest = target.partition(PRIME)
    return short if _PRIMED.fullmatch(mark + rest) else target


def _copied(instructions: Instructions) -> dict[str, JSONSource]:
    return {target: list(source) if isinstance(source, list) else source for target, source in instructions.items()}


def _layers(blocks: tuple[QKVLBlock, ...]) -> Iterator[QKVLProduction | QKVLHeads]:
    for block in blocks:
        if isinstance(block, QKVLRepeat):
            yield from _layers(block.weights)
        else:
            yield block


def _untils(blocks: tuple[QKVLBlock, ...]) -> Iterator[QKVLProduction]:
    for block in blocks:
        if isinstance(block, QKVLRepeat):
            yield from _untils(block.weights)
            if block.until is not None:
                yield block.until


class _Reader:
    """Reads one program's JSON; errors name the path of the wrong field."""

    def __init__(self, json: Any) -> None:
        required, optional = {"register_map", "system_map", "weights"}, {"constants_map", "watch_list", "initial"}
        self.json = _object(json, "QKVL", required, optional | {"prompt", "values", "stop", "functions"})
        self.registers = _strings(self.json["register_map"], "register_map")
        self.short_names = list(self.registers.values())
        self.functions = {
            name: _strings(table, f"functions[{name!r}]")
            for name, table in _object(self.json.get("functions", {}), "functions").items()
        }

    def program(self) -> QKVLProgram:
        self._check_names()
        constants = _object(self.json.get("constants_map", {}), "constants_map")
        # App. J: the string of a constant is optional.
        constants = {name: name if value is None else value for name, value in constants.items()}
        values = _object(self.json.get("values", {}), "values")
        return QKVLProgram(
            register_map=self.registers,
            constants_map=_strings(constants, "constants_map"),
            system_map=self._system(),
            weights=self._blocks(self.json["weights"], "weights", 0),
            watch_list=tuple(
                self._known(name, self.registers, f"watch_list[{index}]")
                for index, name in enumerate(_list_of_strings(self.json.get("watch_list", []), "watch_list"))
            ),
            initial={
                self._known(name, self.short_names, "initial"): value
                for name, value in _strings(self.json.get("initial", {}), "initial").items()
            },
            prompt=tuple(
                self._known(name, self.short_names, f"prompt[{index}]")
                for index, name in enumerate(_list_of_strings(self.json.get("prompt", []), "prompt"))
            ),
            values={
                self._known(name, self.short_names, "values"): _list_of_strings(value, f"values[{name!r}]")
                for name, value in values.items()
            },
            stop=_list_of_strings(self.json.get("stop", []), "stop"),
            functions=self.functions,
        )

    def _check_names(self) -> None:
        for name, short in self.registers.items():
            if not short or PRIME in short or "@" in short:
                raise ProgramsError(
                    f"register_map[{name!r}]: a short name is a string of at least one character without {PRIME} and @;"
                    f" got {short!r}"
                )
        if len(set(self.short_names)) < len(self.short_names):
            raise ProgramsError(f"register_map: two registers share a short name: {self.short_names}")
        for name in self.functions:
            if is_built_in(name):
                raise ProgramsError(f"functions[{name!r}]: this function is built in and has no table")

    def _system(self) -> dict[str, str]:
        json = _object(self.json["system_map"], "system_map", set(_ROLES[:3]), set(_ROLES[3:]))
        roles = _strings(json, "system_map")
        return {role: self._known(name, self.registers, f"system_map[{role!r}]") for role, name in roles.items()}

    def _blocks(self, json: Any, path: str, depth: int) -> tuple[QKVLBlock, ...]:
        if not isinstance(json, list):
            raise ProgramsError(f"{path}: expected a list of production- and repeat-dictionaries; got {json!r}")
        if depth > _DEEPEST:
            raise ProgramsError(f"{path}: repeat blocks within repeat blocks more than {_DEEPEST} deep")
        return tuple(self._block(block, f"{path}[{index}]", depth) for index, block in enumerate(json))

    def _block(self, json: Any, path: str, depth: int) -> QKVLBlock:
        if isinstance(json, dict) and "until" in json:
            _object(json, path, {"until", "weights"}, {"layer_comment", "bound"})
            bound = json.get("bound", DEFAULT_BOUND)
            if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
                raise ProgramsError(f"{path}.bound: expected a positive integer; got {bound!r}")
            return QKVLRepeat(
                weights=self._blocks(json["weights"], f"{path}.weights", depth + 1),
                until=self._until(json["until"], f"{path}.until"),
                bound=bound,
                layer_comment=_typed(json.get("layer_comment", ""), str, f"{path}.layer_comment"),
            )
        if isinstance(json, dict) and "heads" in json:
            _object(json, path, {"heads"}, {"layer_comment"})
            if not isinstance(json["heads"], list) or not json["heads"]:
                raise ProgramsError(f"{path}.heads: expected a list of production-dictionaries; got {json['heads']!r}")
            return QKVLHeads(
                heads=tuple(self._production(head, f"{path}.heads[{i}]") for i, head in enumerate(json["heads"])),
                layer_comment=_typed(json.get("layer_comment", ""), str, f"{path}.layer_comment"),
            )
        return self._production(json, path)

    def _production(self, json: Any, path: str) -> QKVLProduction:
        _object(json, path, {"weights"}, {"layer_comment", "causal_attn", "right_match"})
        weights = _object(json["weights"], f"{path}.weights", {"q", "k"}, {"v"})
        query, key = self._query_and_key(weights, f"{path}.weights")
        return QKVLProduction(
            q=query,
            k=key,
            v=self._value(weights.get("v", {}), f"{path}.weights.v"),
            causal_attn=_typed(json.get("causal_attn", False), bool, f"{path}.causal_attn"),
            right_match=_typed(json.get("right_match", False), bool, f"{path}.right_match"),
            layer_comment=_typed(json.get("layer_comment", ""), str, f"{path}.layer_comment"),
        )

    def _until(self, json: Any, path: str) -> QKVLProduction | None:
        if json == {}:
            return None
        query, key = self._query_and_key(_object(json, path, {"q", "k"}, set()), path)
        if not query:
            raise ProgramsError(f"{path}: expected {{}} for NO_CHANGE, or a query and key with at least one register")
        return QKVLProduction(query, key)

    def _query_and_key(self, json: Mapping[str, Any], path: str) -> tuple[Instructions, Instructions]:
        query, key = _object(json["q"], f"{path}.q"), _object(json["k"], f"{path}.k")
        for target in {**query, **key}:
            if target not in query or target not in key:
                missing = "k" if target in query else "q"
                raise ProgramsError(f"{path}.{missing}: lacks {target!r}, with which the other would be compared")
            self._known(_unprimed(target), self.short_names, f"{path}.q")
            sides = [
                self._source(side[target], f"{path}.{name}[{target!r}]") for name, side in (("q", query), ("k", key))
            ]
            if not any(side.plain for side in sides):
                raise ProgramsError(
                    f"{path}: {target!r} is a condition in q and in k; one of them must be a single value"
                )
        return _copied(query), _copied(key)

    def _value(self, json: Any, path: str) -> Instructions:
        for target, source in _object(json, path).items():
            where = f"{path}[{target!r}]"
            self._known(target, self.short_names, path)
            if target == self.registers.get(self.json["system_map"].get("position")):
                raise ProgramsError(
                    f"{where}: the position register cannot be set: a cell is identified by it (33a-ii)"
                )
            read = self._source(source, where)
            if read.negated or (read.several and len(read.constants) != 1):
                raise ProgramsError(f"{where}: expected a register or one constant; got {source!r}")
        return _copied(json)

    def _source(self, json: Any, path: str) -> Source:
        source = Source.from_json(json, self.short_names, path)
        if source.function and not is_built_in(source.function) and source.function not in self.functions:
            raise ProgramsError(f"{path}: the function `@{source.function}` is neither built in nor in `functions`")
        return source

    @staticmethod
    def _known(name: str, names: Collection[str], path: str) -> str:
        if name not in names:
            raise ProgramsError(f"{path}: unknown register {name!r}; there are {', '.join(names)}")
        return name


def _object(json: Any, path: str, required: set[str] | None = None, optional: set[str] | None = None) -> dict[str, Any]:
    """A JSON object; if `required` is given, with these keys and at most the keys of `optional` besides."""
    if not isinstance(json, dict) or not all(isinstance(key, str) for key in json):
        raise ProgramsError(f"{path}: expected an object; got {json!r}")
    if required is not None:
        if missing := required - set(json):
            raise ProgramsError(f"{path}: missing {', '.join(sorted(missing))}; it has {', '.join(json) or 'nothing'}")
        if unknown := set(json) - required - (optional or set()):
            raise ProgramsError(f"{path}: unknown {', '.join(sorted(unknown))}; expected {', '.join(sorted(required))}")
    return json


def _strings(json: Any, path: str) -> dict[str, str]:
    for key, value in _object(json, path).items():
        _typed(value, str, f"{path}[{key!r}]")
    return dict(json)


def _list_of_strings(json: Any, path: str) -> tuple[str, ...]:
    if not isinstance(json, list) or not all(isinstance(item, str) for item in json):
        raise ProgramsError(f"{path}: expected a list of strings; got {json!r}")
    return tuple(json)


def _typed(json: Any, kind: type, path: str) -> Any:
    if not isinstance(json, kind):
        raise ProgramsError(f"{path}: expected a {kind.__name__}; got {json!r}")
    return json
