"""The features. Each is a folder with everything that it consists of, and has one line in the tuple."""

from smartfeeds.app.feature import Feature
from smartfeeds.features.accounts import ACCOUNTS
from smartfeeds.features.administration import ADMINISTRATION
from smartfeeds.features.archive import ARCHIVE
from smartfeeds.features.attachments import ATTACHMENTS
from smartfeeds.features.authoring import AUTHORING
from smartfeeds.features.backup import BACKUP
from smartfeeds.features.bot import BOT
from smartfeeds.features.callbacks import CALLBACKS
from smartfeeds.features.cloud import CLOUD
from smartfeeds.features.cluster import CLUSTER
from smartfeeds.features.conflicts import CONFLICTS
from smartfeeds.features.demo import DEMO
from smartfeeds.features.doctor import DOCTOR
from smartfeeds.features.documents import DOCUMENTS
from smartfeeds.features.embedding import EMBEDDING
from smartfeeds.features.following import FOLLOWING
from smartfeeds.features.hub import HUB
from smartfeeds.features.mirrors import MIRRORS
from smartfeeds.features.moving_in import MOVING_IN
from smartfeeds.features.nno import NNO
from smartfeeds.features.pages import PAGES
from smartfeeds.features.polling import POLLING
from smartfeeds.features.prefetch import PREFETCH
from smartfeeds.features.presence import PRESENCE
from smartfeeds.features.privacy import PRIVACY
from smartfeeds.features.sync_documents import SYNC_DOCUMENTS
from smartfeeds.features.webhook import WEBHOOK

FEATURES: tuple[Feature, ...] = (
    ACCOUNTS,
    ADMINISTRATION,
    ARCHIVE,
    ATTACHMENTS,
    AUTHORING,
    BACKUP,
    BOT,
    CALLBACKS,
    CLOUD,
    CLUSTER,
    CONFLICTS,
    DEMO,
    DOCTOR,
    DOCUMENTS,
    EMBEDDING,
    FOLLOWING,
    HUB,
    MIRRORS,
    MOVING_IN,
    NNO,
    PAGES,
    POLLING,
    PREFETCH,
    PRESENCE,
    PRIVACY,
    SYNC_DOCUMENTS,
    WEBHOOK,
)
