"""Frozen values that the packages exchange, and the Protocols of the edges.

Order of the values of one sample: Problem -> Project -> Prompt -> Completion -> Solution -> Integrated
-> Execution -> TestReport -> Verdict -> Result. Names have units (`_s` seconds, `_bytes` bytes, `_usd` US
dollars). Paths inside a project are relative, with `/`, and never begin with `./`.

    samples    Problem, Project, Prompt, SampleKey
    calls      Completion, Provider
    agents     Dialogue, AgentSettings, AgentWork
    results    Solution, Integrated, TestReport, Verdict, Result
    sandbox    Job, Execution, Sandbox
    settings   Setting: declaration and check of settings
"""

from astra_async.types.agents import (
    AGENT_MINUTES,
    AgentEnd,
    AgentLimits,
    AgentSettings,
    AgentWire,
    AgentWork,
    Dialogue,
    Message,
    NativeBody,
    Tool,
    ToolCall,
    ToolResult,
)
from astra_async.types.calls import (
    DEFAULT_MAX_TOKENS,
    LONGEST_RESET_S,
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
from astra_async.types.results import (
    REUSED,
    Changed,
    Dropped,
    Failure,
    FileChange,
    Integrated,
    ModedContent,
    NamedOutcome,
    Outcome,
    Result,
    Solution,
    Status,
    TestCase,
    TestReport,
    Trouble,
    Unusable,
    Verdict,
    is_last,
)
from astra_async.types.samples import (
    ANSWER_FORMATS,
    AnswerKey,
    ExpectedTest,
    Format,
    Manifest,
    Problem,
    Project,
    ProjectFile,
    Prompt,
    S3Settings,
    SampleKey,
    TurnKey,
    is_agent,
)
from astra_async.types.sandbox import Execution, Job, Limits, RunSandbox, Sandbox
from astra_async.usage import Usage
