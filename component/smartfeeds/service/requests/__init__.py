"""Requests and responses: one frozen value for each, the same for every wire.

Each module defines the requests and responses of one subject, and the package exports all of them. Use cases that one
wire or one feature has define theirs beside their functions, as in `service.authorization`.
"""

from smartfeeds.service.requests.affiliations import AffiliationList as AffiliationList
from smartfeeds.service.requests.affiliations import AffiliationShown as AffiliationShown
from smartfeeds.service.requests.affiliations import GetAffiliations as GetAffiliations
from smartfeeds.service.requests.affiliations import PartlyRefused as PartlyRefused
from smartfeeds.service.requests.affiliations import SetAffiliations as SetAffiliations
from smartfeeds.service.requests.base import Answer as Answer
from smartfeeds.service.requests.base import EmptyResult as EmptyResult
from smartfeeds.service.requests.base import NodeRequest as NodeRequest
from smartfeeds.service.requests.base import OrderBy as OrderBy
from smartfeeds.service.requests.base import Request as Request
from smartfeeds.service.requests.base import ResultSet as ResultSet
from smartfeeds.service.requests.base import local_part as local_part
from smartfeeds.service.requests.discovery import GetItemIds as GetItemIds
from smartfeeds.service.requests.discovery import GetNodeInfo as GetNodeInfo
from smartfeeds.service.requests.discovery import GetNodes as GetNodes
from smartfeeds.service.requests.discovery import ItemIds as ItemIds
from smartfeeds.service.requests.discovery import NodeInfo as NodeInfo
from smartfeeds.service.requests.discovery import NodeList as NodeList
from smartfeeds.service.requests.items import FeedOrigin as FeedOrigin
from smartfeeds.service.requests.items import FeedPage as FeedPage
from smartfeeds.service.requests.items import FileShown as FileShown
from smartfeeds.service.requests.items import GetItem as GetItem
from smartfeeds.service.requests.items import ItemPrecondition as ItemPrecondition
from smartfeeds.service.requests.items import ItemShown as ItemShown
from smartfeeds.service.requests.items import Page as Page
from smartfeeds.service.requests.items import Publish as Publish
from smartfeeds.service.requests.items import Published as Published
from smartfeeds.service.requests.items import Pull as Pull
from smartfeeds.service.requests.items import PullFeed as PullFeed
from smartfeeds.service.requests.items import Purge as Purge
from smartfeeds.service.requests.items import PurgeBegun as PurgeBegun
from smartfeeds.service.requests.items import Retract as Retract
from smartfeeds.service.requests.nodes import Configuration as Configuration
from smartfeeds.service.requests.nodes import Configure as Configure
from smartfeeds.service.requests.nodes import CreateNode as CreateNode
from smartfeeds.service.requests.nodes import DeleteNode as DeleteNode
from smartfeeds.service.requests.nodes import EnsureNode as EnsureNode
from smartfeeds.service.requests.nodes import GetConfiguration as GetConfiguration
from smartfeeds.service.requests.nodes import GetDefaultConfiguration as GetDefaultConfiguration
from smartfeeds.service.requests.nodes import NodeCreated as NodeCreated
from smartfeeds.service.requests.nodes import NodeEnsured as NodeEnsured
from smartfeeds.service.requests.subscriptions import GetDefaultSubscribeOptions as GetDefaultSubscribeOptions
from smartfeeds.service.requests.subscriptions import GetNodeSubscriptions as GetNodeSubscriptions
from smartfeeds.service.requests.subscriptions import GetSubscribeOptions as GetSubscribeOptions
from smartfeeds.service.requests.subscriptions import GetSubscriptions as GetSubscriptions
from smartfeeds.service.requests.subscriptions import SetSubscribeOptions as SetSubscribeOptions
from smartfeeds.service.requests.subscriptions import SetSubscriptions as SetSubscriptions
from smartfeeds.service.requests.subscriptions import Subscribe as Subscribe
from smartfeeds.service.requests.subscriptions import Subscribed as Subscribed
from smartfeeds.service.requests.subscriptions import SubscribeOptions as SubscribeOptions
from smartfeeds.service.requests.subscriptions import SubscriptionList as SubscriptionList
from smartfeeds.service.requests.subscriptions import SubscriptionShown as SubscriptionShown
from smartfeeds.service.requests.subscriptions import Unsubscribe as Unsubscribe
from smartfeeds.service.requests.subscriptions import Unsubscribed as Unsubscribed
