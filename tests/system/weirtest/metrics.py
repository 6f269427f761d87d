"""Prometheus' text format, as far as weir writes it."""

import re

LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")


class Metrics:
    def __init__(self, text):
        self._samples = {}
        self.types = {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.types[name] = kind
            if line.startswith("#"):
                continue
            match = SAMPLE.fullmatch(line)
            if match is None:
                raise AssertionError(f"no sample: {line!r}")
            labels = frozenset(LABEL.findall(match[2] or ""))
            if (match[1], labels) in self._samples:
                raise AssertionError(f"twice: {line!r}")
            self._samples[match[1], labels] = float(match[3])

    def series(self):
        """Names with their labels, without values."""
        return set(self._samples)

    def get(self, name, **labels):
        """0 if there is no such sample."""
        return self._samples.get((name, frozenset(labels.items())), 0)

    def total(self, name, **labels):
        """The sum over all labels that are not named."""
        wanted = set(labels.items())
        return sum(value for (known, has), value in self._samples.items()
                   if known == name and wanted <= has)
