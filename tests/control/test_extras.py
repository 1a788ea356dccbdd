"""Missing packages are named with the extra that installs them, and `import hf_mech` needs none of them."""

from __future__ import annotations

import pickle

import pytest

from hf_mech.control import MissingExtraError
from tests.test_imports import loaded_modules, python

MISSING = "import sys; sys.modules[{package!r}] = None; {code}"


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("gymnasium", "import hf_mech.control", "control"),
        ("vizdoom", "import hf_mech.control as c; c.make_environment('hf_mech/MyWayHome-v0')", "vizdoom"),
    ],
)
def test_a_missing_package_names_its_extra(package: str, code: str, extra: str) -> None:
    done = python(MISSING.format(package=package, code=code))
    assert f"MissingExtraError: {package} is not installed. Run: pip install 'hf-mech[{extra}]'" in done.stderr


def test_environments_without_an_engine_need_no_vizdoom() -> None:
    code = "import hf_mech.control as c; c.make_environment('hf_mech/Rooms-v0').reset(seed=0)"
    done = python(MISSING.format(package="vizdoom", code=code))
    assert done.returncode == 0, done.stderr


def test_import_hf_mech_loads_neither() -> None:
    assert not {"gymnasium", "vizdoom", "minari", "ray", "pygame"} & loaded_modules("import hf_mech")


def test_the_error_passes_from_a_worker_process() -> None:
    error = pickle.loads(pickle.dumps(MissingExtraError("minari", "minari")))
    assert str(error) == str(MissingExtraError("minari", "minari"))
