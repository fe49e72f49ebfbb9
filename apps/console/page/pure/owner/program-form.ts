import { PROGRAM_SIZES } from '@skerry/protocol/content/sizes';
import { parseExactJson } from '@skerry/protocol/json/exact';
import { numberIn, rangeText } from './range.ts';

/** Programs to begin with, and what is typed to make one. */

export interface Example {
  readonly title: string;
  readonly name: string;
  readonly runtime: 'nodejs' | 'python3';
  readonly code: string;
  /** What it is run with. */
  readonly variables: string;
}

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Hello, in Python',
    name: 'hello.py',
    runtime: 'python3',
    variables: 'name=Ada',
    code: `def main(variables, request):
    name = variables.get("name", "world")
    print("greeted", name)  # into its log
    return {"hello": name}
`,
  },
  {
    title: 'Hello, in JavaScript',
    name: 'hello.mjs',
    runtime: 'nodejs',
    variables: 'name=Ada',
    code: `export default function main(variables) {
  return { hello: variables.name ?? 'world' };
}
`,
  },
  {
    title: 'Prime numbers',
    name: 'primes.py',
    runtime: 'python3',
    variables: 'below=100',
    code: `def main(variables, request):
    below = int(variables.get("below", 100))
    if below > 100000:
        raise ValueError("ask for less than 100000")
    sieve = bytearray([1]) * max(below, 2)
    sieve[0:2] = b"\\0\\0"
    for n in range(2, int(below ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, len(sieve), n)))
    return {"primes": [n for n in range(below) if sieve[n]]}
`,
  },
  {
    title: 'A counter that stays in memory',
    name: 'counter.mjs',
    runtime: 'nodejs',
    variables: '',
    code: `// A warm program keeps what it has in memory; a cold one begins anew.
let calls = 0;

export default function main() {
  calls += 1;
  return { calls };
}
`,
  },
  {
    title: 'A whole web application',
    name: 'app.py',
    runtime: 'python3',
    variables: '',
    code: `# WSGI: open /vm/HASH/ on a compute node in a browser.
def app(environ, start_response):
    start_response("200 OK", [("content-type", "text/plain; charset=utf-8")])
    return [f"You asked for {environ['PATH_INFO'] or '/'}\\n".encode()]
`,
  },
];

export const RUNTIMES = ['python3', 'nodejs'] as const;

/** What is typed to publish a program. */
export interface ProgramForm {
  readonly name: string;
  readonly runtime: string;
  readonly code: string;
  /** MiB. */
  readonly memory: string;
  /** Seconds. */
  readonly timeout: string;
}

/** The content of the message, or the first thing that is wrong. */
export function readProgramForm(
  form: ProgramForm,
): { readonly content: Readonly<Record<string, unknown>> } | { readonly fault: string } {
  const { name, runtime, code } = form;
  const memory = numberIn(PROGRAM_SIZES.memory, form.memory);
  const timeout = numberIn(PROGRAM_SIZES.timeout, form.timeout);
  if (name.trim() === '') return { fault: 'A program has a name.' };
  if (!memory) return { fault: `The memory is ${rangeText(PROGRAM_SIZES.memory, 'MiB')}.` };
  if (!timeout) return { fault: `The time of a call is ${rangeText(PROGRAM_SIZES.timeout, 'seconds')}.` };
  return { content: { name: name.trim(), runtime, code, memory, timeout } };
}

type Variables = Readonly<Record<string, unknown>>;

/** JSON as what it means, anything else as the text that it is. Throws AppError where it is JSON that would be sent as another. */
function readValue(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** Lines of `name=value`, or what is wrong with the first that cannot be sent as it was typed. */
export function readVariables(lines: string): { readonly variables: Variables } | { readonly fault: string } {
  const read = new Map<string, unknown>();
  for (const [index, line] of lines.split('\n').entries()) {
    if (line.trim() === '') continue;
    const fault = (why: string) => ({ fault: `Line ${index + 1}: ${why}.` });
    const at = line.indexOf('=');
    const name = line.slice(0, Math.max(at, 0)).trim();
    if (name === '') return fault('a variable has the form name=value');
    if (read.has(name)) return fault(`there is another line for ${name}, and a variable has one value`);
    try {
      read.set(name, readValue(line.slice(at + 1)));
    } catch (error) {
      return fault(error instanceof Error ? error.message : String(error));
    }
  }
  return { variables: Object.fromEntries(read) };
}

/** An answer as it is shown: JSON in lines of its own, and as it came where something of it would be lost. */
export function showAnswer(answer: string): string {
  try {
    return JSON.stringify(parseExactJson(answer), null, 2);
  } catch {
    return answer;
  }
}
