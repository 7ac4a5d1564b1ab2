"""The values that travel through the house, all frozen, and the Protocols of its edges.

A sample's way: Problem -> Project -> Prompt -> Completion -> Solution -> Integrated -> Execution
-> TestReport -> Verdict -> Result. Units stand in the names (`_s` seconds, `_bytes` bytes, `_usd`
US dollars); paths inside a project are relative, with `/`, and never begin with `./`.

    samples    Problem, SampleKey          answers    Solution, Integrated
    projects   Project, Prompt             sandbox    Job, Execution, Sandbox
    calls      Completion, Provider        results    TestReport, Verdict, Result
    settings   Setting: how whatever can be set is declared and checked
"""

from astra_async.types.answers import Dropped, FileChange, Integrated, Solution, Unusable
from astra_async.types.calls import (
    CallWatch,
    Completion,
    Exchange,
    FinishReason,
    MaxTokensField,
    ModelRequest,
    ModelSettings,
    Provider,
    RateLimits,
    RateWindow,
    Role,
    Thinking,
    Usage,
)
from astra_async.types.declarations import (
    Declared,
    Setting,
    Text,
    checked_table,
    checked_value,
    declared,
    refuse_unknown,
)
from astra_async.types.projects import Project, ProjectFile, ProjectStore, Prompt, S3Settings
from astra_async.types.results import (
    REUSED,
    Failure,
    NamedOutcome,
    Outcome,
    Result,
    Status,
    TestCase,
    TestReport,
    TrialState,
    Trouble,
    TurnResult,
    Verdict,
    is_last,
)
from astra_async.types.samples import AnswerKey, ExpectedTest, Format, Manifest, Problem, SampleKey, TurnKey
from astra_async.types.sandbox import Execution, Job, Limits, RunSandbox, Sandbox

__all__ = [
    "REUSED",
    "AnswerKey",
    "CallWatch",
    "Completion",
    "Declared",
    "Dropped",
    "Exchange",
    "Execution",
    "ExpectedTest",
    "Failure",
    "FileChange",
    "FinishReason",
    "Format",
    "Integrated",
    "Job",
    "Limits",
    "Manifest",
    "MaxTokensField",
    "ModelRequest",
    "ModelSettings",
    "NamedOutcome",
    "Outcome",
    "Problem",
    "Project",
    "ProjectFile",
    "ProjectStore",
    "Prompt",
    "Provider",
    "RateLimits",
    "RateWindow",
    "Result",
    "Role",
    "RunSandbox",
    "S3Settings",
    "SampleKey",
    "Sandbox",
    "Setting",
    "Solution",
    "Status",
    "TestCase",
    "TestReport",
    "Text",
    "Thinking",
    "TrialState",
    "Trouble",
    "TurnKey",
    "TurnResult",
    "Unusable",
    "Usage",
    "Verdict",
    "checked_table",
    "checked_value",
    "declared",
    "is_last",
    "refuse_unknown",
]
