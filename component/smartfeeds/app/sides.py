"""Joins the tables of the kernel and of all features: lists, XMPP, commands in chats, and metrics."""

from typing import Any

from smartfeeds.chat.commands import ChatTable
from smartfeeds.features import FEATURES
from smartfeeds.service.consumer_requests import CONSUMERS
from smartfeeds.service.managed_nodes import NODES
from smartfeeds.service.node_people import MEMBERS, SUBSCRIPTIONS
from smartfeeds.service.resources import Resource
from smartfeeds.service.work import WORK
from smartfeeds.telemetry import GATHERED, KERNEL_METRICS
from smartfeeds.xmpp import authorization
from smartfeeds.xmpp.resources import commands_of
from smartfeeds.xmpp.side import XmppSide, joined

KERNEL = XmppSide(commands=authorization.COMMANDS)
KERNEL_RESOURCES: tuple[Resource[Any], ...] = (NODES, MEMBERS, SUBSCRIPTIONS, CONSUMERS, WORK)


def all_resources() -> tuple[Resource[Any], ...]:
    """Returns the lists of the kernel and of all features."""
    return (*KERNEL_RESOURCES, *(resource for feature in FEATURES for resource in feature.service().resources))


def xmpp_side() -> XmppSide:
    """Returns the joined tables of the kernel and all features for XMPP."""
    lists = XmppSide(commands=commands_of(all_resources()))
    sides = (feature.service().xmpp for feature in FEATURES)
    return joined([KERNEL, lists, *(side for side in sides if side is not None)])


def chat_tables() -> tuple[ChatTable, ...]:
    """Returns the commands of features in chats."""
    tables = (feature.service().chat for feature in FEATURES)
    return tuple(table for table in tables if table is not None)


def declare_metrics() -> None:
    """Adds the metrics of all features to those of the kernel. A second call changes nothing."""
    GATHERED.kinds = (*KERNEL_METRICS, *(kind for feature in FEATURES for kind in feature.service().metrics))
