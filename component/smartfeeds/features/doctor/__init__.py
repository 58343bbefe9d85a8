"""`smartfeeds doctor`: what is wrong, and what to do."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    import click


def _doctor() -> "click.Command":
    from smartfeeds.features.doctor.doctor import doctor_command

    return doctor_command


DOCTOR = Feature(
    "doctor",
    commands=(
        CommandRow(
            "doctor",
            CommandTopic.SERVICE,
            "Connect as the component and check everything that the service needs; exit code 1 if something must be "
            "fixed.",
            _doctor,
        ),
    ),
)
