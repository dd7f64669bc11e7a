"""Names for side outputs."""

from __future__ import annotations

from penstock.common.typeinfo import TypeInformation, Types, type_info_of
from penstock.errors import InvalidArgumentError
from penstock.refusals import NO_JAVA, refusing

__all__ = ["OutputTag"]


@refusing({"get_java_output_tag": NO_JAVA})
class OutputTag:
    """Names a side output and the type of what goes there. Tags of one id are equal."""

    __slots__ = ("tag_id", "type_info")

    def __init__(
        self, tag_id: str, type_info: TypeInformation | type | list[TypeInformation] | None = None
    ) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise InvalidArgumentError.of("the id of an OutputTag", "a non-empty string", tag_id)
        self.tag_id = tag_id
        self.type_info: TypeInformation = (
            Types.ROW(type_info) if isinstance(type_info, list) else type_info_of(type_info)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
