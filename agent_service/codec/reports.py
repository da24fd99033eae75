"""ContextReport and ContextStats ↔ protobuf. Counts stop at the int32 maximum."""

from agent_service.codec.numbers import int32
from agent_service.domain.context import ComponentReport, ContextReport, Reason, Status
from agent_service.ports import ContextStats
from agent_service.v1 import agent_pb2 as pb

_Component = pb.ContextComponentReport
_STATUSES = {status: _Component.Status.Value(f"STATUS_{status.name}") for status in Status}
_REASONS = {reason: _Component.Reason.Value(f"REASON_{reason.name}") for reason in Reason}
_STATUS_OF = {number: status for status, number in _STATUSES.items()}
_REASON_OF = {number: reason for reason, number in _REASONS.items()}


def report_message(report: ContextReport) -> pb.ContextReport:
    """Encode a report."""
    message = pb.ContextReport(
        window=int32(report.window),
        reserved_output=int32(report.reserved_output),
        usable=int32(report.usable),
        total_tokens=int32(report.total_tokens),
        overhead_tokens=int32(report.overhead_tokens),
        counter=report.counter,
        exact=report.exact,
        stable_prefix_tokens=int32(report.stable_prefix_tokens),
        components=[_component_message(component) for component in report.components],
        dropped=int32(report.dropped),
        truncated=int32(report.truncated),
        assemble_micros=report.assemble_micros,
        model_call=int32(report.model_call),
    )
    if report.actual_prompt_tokens is not None:
        message.actual_prompt_tokens = int32(report.actual_prompt_tokens)
    return message


def report_of(message: pb.ContextReport) -> ContextReport:
    """Decode a report that report_message made."""
    return ContextReport(
        window=message.window,
        reserved_output=message.reserved_output,
        usable=message.usable,
        total_tokens=message.total_tokens,
        overhead_tokens=message.overhead_tokens,
        counter=message.counter,
        exact=message.exact,
        stable_prefix_tokens=message.stable_prefix_tokens,
        components=tuple(_component_of(component) for component in message.components),
        dropped=message.dropped,
        truncated=message.truncated,
        assemble_micros=message.assemble_micros,
        actual_prompt_tokens=(
            message.actual_prompt_tokens if message.HasField("actual_prompt_tokens") else None
        ),
        model_call=message.model_call,
    )


def encode_report(report: ContextReport) -> bytes:
    """Give a report as bytes to store."""
    return report_message(report).SerializeToString(deterministic=True)


def decode_report(stored: bytes) -> ContextReport:
    """Read what encode_report gave."""
    return report_of(pb.ContextReport.FromString(stored))


def stats_response(stats: ContextStats) -> pb.GetContextStatsResponse:
    """Encode how much context was used; last_report is unset before the first turn."""
    return pb.GetContextStatsResponse(
        last_report=None if stats.last_report is None else report_message(stats.last_report),
        totals=pb.ContextTotals(
            turns=int32(stats.turns),
            total_tokens=stats.total_tokens,
            actual_prompt_tokens=stats.actual_prompt_tokens,
            dropped=stats.dropped,
            truncated=stats.truncated,
        ),
    )


def _component_message(component: ComponentReport) -> pb.ContextComponentReport:
    return _Component(
        id=component.id,
        kind=component.kind,
        priority=int32(component.priority),
        status=_STATUSES[component.status],
        reason=_REASONS[component.reason],
        original_tokens=int32(component.original_tokens),
        tokens=int32(component.tokens),
        original_exact=component.original_exact,
        items_in=int32(component.items_in),
        items_kept=int32(component.items_kept),
        zone=component.zone,
        sha256=component.sha256,
    )


def _component_of(message: pb.ContextComponentReport) -> ComponentReport:
    return ComponentReport(
        id=message.id,
        kind=message.kind,
        priority=message.priority,
        status=_STATUS_OF[message.status],
        reason=_REASON_OF[message.reason],
        original_tokens=message.original_tokens,
        tokens=message.tokens,
        original_exact=message.original_exact,
        items_in=message.items_in,
        items_kept=message.items_kept,
        zone=message.zone,
        sha256=message.sha256,
    )
