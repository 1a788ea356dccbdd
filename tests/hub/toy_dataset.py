"""A data set of two configurations and two splits."""

from collections.abc import Iterator
from typing import Any, ClassVar

import datasets

CITATION = "@misc{toydata, title={Toy data}}"


class ToyDataset(datasets.GeneratorBasedBuilder):
    """Numbers and their parity."""

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar = [
        datasets.BuilderConfig(name="small", version=VERSION),
        datasets.BuilderConfig(name="large", version=VERSION),
    ]
    DEFAULT_CONFIG_NAME = "small"

    def _info(self) -> datasets.DatasetInfo:
        features = datasets.Features(
            {
                "number": datasets.Value("int32"),
                "digits": datasets.List(datasets.Value("int8")),
                "parity": datasets.ClassLabel(names=["even", "odd"]),
            }
        )
        return datasets.DatasetInfo(description="Numbers and their parity.", citation=CITATION, features=features)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        size = {"small": 10, "large": 100}[self.config.name]
        return [
            datasets.SplitGenerator(name="train", gen_kwargs={"numbers": range(size)}),
            datasets.SplitGenerator(name="test", gen_kwargs={"numbers": range(size, size + 3)}),
        ]

    def _generate_examples(self, numbers: range) -> Iterator[tuple[int, dict[str, Any]]]:
        for number in numbers:
            yield number, {"number": number, "digits": [int(d) for d in str(number)], "parity": number % 2}
