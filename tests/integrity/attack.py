"""What an attack is: a wrong answer that wants more than it honestly earns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from attacked_projects import SHOPS, WRONG_PASSES

Outcome = Literal["prevented", "proven", "unproven", "documented"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack: code before and after the module's own, and further files of the answer."""

    name: str
    framework: str
    outcome: Outcome
    before: str = ""
    after: str = ""
    files: dict[str, str] = field(default_factory=dict)
    visible: str = ""
    worth: int = WRONG_PASSES  # of 4 tests, when prevented
    races: bool = False  # with the runner's own writing: it may lose, and earn nothing by it
    everybody: bool = True

    @property
    def answer(self) -> dict[str, str]:
        shop = SHOPS[self.framework]
        return {shop.main: shop.with_code(shop.wrong, self.before, self.after), **self.files}
