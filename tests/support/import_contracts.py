"""Defines a contract for import-linter: which modules may import a package, by the ends of their names."""

from typing import cast

import grimp
from importlinter import Contract, ContractCheck, fields, output
from typing_extensions import override


class NameEndsContract(Contract):
    """Lets only modules below `packages`, or whose name ends in one of `endings`, import `package`."""

    type_name = "name_ends"

    package = fields.StringField()
    endings = fields.ListField(subfield=fields.StringField())
    packages = fields.ListField(subfield=fields.StringField())

    @override
    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        endings = tuple(cast("list[str]", self.endings))
        below = tuple(f"{package}." for package in cast("list[str]", self.packages))
        importers = graph.find_modules_that_directly_import(str(self.package))
        wrong = sorted(name for name in importers if not name.endswith(endings) and not f"{name}.".startswith(below))
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    @override
    def render_broken_contract(self, check: ContractCheck) -> None:
        for name in cast("list[str]", check.metadata["wrong"]):
            output.print_error(f"{name} imports {self.package}; move its SQL to a module whose name ends in 'store'.")
