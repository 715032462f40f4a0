"""The exercise engine: an answer goes in, a verdict in words comes out; claims of a text; our weights in torch.nn."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claims": ["WRITTEN_FOR", "written_for"],
        "exercise": ["PLANTED", "CheckFailed", "Edit", "Exercise", "Reply", "call", "reply_to", "value", "warm_up"],
        "compare": ["difference"],
        "exchange": ["read", "read_replies", "write", "write_replies"],
        "torch_names": ["copy_into_torch", "in_our_names"],
        "judge": ["PUBLIC", "VISIBLE", "hidden_seed", "replies", "verdict"],
    },
)
