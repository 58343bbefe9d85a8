"""Erasures as work that goes on, and what has become of the erasure of a person (OPS-070)."""

from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.privacy import rows
from smartfeeds.features.privacy.blocking import GetBlockList, SetBlockList, get_block_list, set_block_list
from smartfeeds.features.privacy.erasing import ErasePerson, ErasureStatus, erase_person, erasure_status, read_person
from smartfeeds.features.privacy.erasures import Erasure
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.resources import ListAnswer, ListRequest, Resource, reader
from smartfeeds.service.standing import check_admin
from smartfeeds.service.use_cases import UseCases
from smartfeeds.service.work import WORK, WORK_SHOWN, OpenWork
from smartfeeds.store.base import ReadTx

_DIGEST_DIGITS: Final = 8  # 32 bits: the few erasures of a service do not share a number by chance


@dataclass(frozen=True, slots=True)
class ListErasures(ListRequest):
    """The erasures that began last, those that have ended included."""


@dataclass(frozen=True, slots=True)
class GetErasure(Request):
    """The erasure of a person, for admins."""

    jid: str


@dataclass(frozen=True, slots=True)
class ErasureShown(Answer):
    """The number of the work, the job, and which followers have received the deletions."""

    number: str
    status: ErasureStatus


def list_erasures(tx: ReadTx, context: Context, request: ListErasures) -> ListAnswer[OpenWork]:
    """Erasures, the newest first; none for users who are no admins."""
    if not is_admin(context.policy, request.actor):
        return ListAnswer(())
    return ListAnswer(tuple(map(_work, rows.newest_erasures(tx, WORK_SHOWN))))


def get_erasure(tx: ReadTx, context: Context, request: GetErasure) -> ErasureShown:
    """The erasure of a person. Raises FeedError: FORBIDDEN, ITEM_NOT_FOUND if there was none."""
    check_admin(context.policy, request.actor)
    person = read_person(request.jid)
    status = erasure_status(tx, context, person)
    if status is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"{person.jid} was never erased here")
    return ErasureShown(_work(status.job).number, status)


def _work(job: Erasure) -> OpenWork:
    number = f"e{job.digest.hex()[:_DIGEST_DIGITS]}"
    return OpenWork(number, "erasure", job.jid, job.phase.value, since_us=job.started_us)


# A part of the list of work: it has the same command.
ERASURES: Resource[OpenWork] = replace(WORK, read=reader(ListErasures))
USE_CASES = UseCases(
    reads={
        ListErasures: ("list_erasures", list_erasures),
        GetErasure: ("get_erasure", get_erasure),
        GetBlockList: ("get_block_list", get_block_list),
    },
    writes={
        SetBlockList: ("set_block_list", set_block_list),
        ErasePerson: ("erase_person", erase_person),
    },
)
