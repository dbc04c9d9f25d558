// Drives a program with the TypeScript SDK of Claude Code, and prints what was seen of each query as one line of JSON.
import { pathToFileURL } from "node:url";

const { sdk, program, workspace, environment, model } = JSON.parse(process.argv[2]);
const { query } = await import(pathToFileURL(sdk));
const usual = { pathToClaudeCodeExecutable: program, cwd: workspace, model, env: { ...process.env, ...environment } };

async function* once(text) {
  yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null, session_id: "" };
}

async function seen(name, options, prompt = "PROMPT") {
  const told = { name, kinds: [], result: null, session: "", error: "" };
  try {
    for await (const message of query({ prompt, options: { ...usual, ...options } })) {
      told.kinds.push(message.subtype ? `${message.type} ${message.subtype}` : message.type);
      if (message.type === "result") {
        told.result = message.result ?? null;
        told.session = message.session_id;
        told.structured = message.structured_output ?? null;
      }
    }
  } catch (error) {
    told.error = String(error.message ?? error);
  }
  return told;
}

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const id = "11111111-2222-4333-8444-555555555555";
const changed = { behavior: "allow", updatedInput: { file_path: `${workspace}/a.txt`, content: "CHANGED" } };
const rows = [
  ["plain", {}],
  ["isolated", { settingSources: [], maxThinkingTokens: 2048, fallbackModel: "claude-sonnet-4-5" }],
  ["session", { sessionId: id, systemPrompt: { type: "preset", preset: "claude_code", append: "Like a pirate." } }],
  ["forked", { resume: id, forkSession: true }],
  ["structured", { outputFormat: { type: "json_schema", schema } }, "FORM"],
  ["asked", { canUseTool: async () => changed }, once("WRITE")],
  ["delegated", { agents: { rev: { description: "Reviews.", prompt: "Review." } } }, "DELEGATE"],
];
for (const [name, options, prompt] of rows) console.log(JSON.stringify(await seen(name, options, prompt)));

let begin;
const ready = new Promise((resolve) => (begin = resolve));
async function* later() {
  await ready;
  yield* once("PROMPT");
}
const controlled = query({ prompt: later(), options: usual });
const agents = await controlled.supportedAgents();
const commands = await controlled.supportedCommands();
await controlled.setMaxThinkingTokens(4096);
begin();
for await (const message of controlled) if (message.type === "result") break;
const names = (all) => all.map((one) => one.name);
console.log(JSON.stringify({ name: "controlled", agents: names(agents), commands: names(commands) }));
