"""A turn of a conversation: from the user's message to the stored answer."""

from agent_service.chat.reply import Reply, ReplySettings
from agent_service.chat.running import Pace
from agent_service.chat.sweep import close_lost_turns
from agent_service.chat.turns import ChatTurns, TurnSettings

__all__ = ["ChatTurns", "Pace", "Reply", "ReplySettings", "TurnSettings", "close_lost_turns"]
