"""GetStats."""

from memory_service.codec.memories import timestamp
from memory_service.ports import StoreStats
from memory_service.v1 import memory_pb2 as pb


def stats_response(stats: StoreStats) -> pb.GetStatsResponse:
    """Give the counts."""
    return pb.GetStatsResponse(
        revision=stats.revision,
        active_by_type=stats.active_by_type,
        memories_by_status=stats.memories_by_status,
        memories_by_index_state=stats.memories_by_index_state,
        jobs_by_state=stats.jobs_by_state,
        oldest_job_time=timestamp(stats.oldest_job),
    )
