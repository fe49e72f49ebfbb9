/** One fenced block of a page that is run, and what it says it prints. */
export interface Example {
  /** Of the opening fence, from 1. */
  readonly line: number;
  readonly script: string;
  /** The text of a `json output` block right after it. */
  readonly output: string | undefined;
}

interface Block {
  readonly line: number;
  readonly info: string;
  readonly text: string;
}

function readBlocks(page: string): Block[] {
  const blocks: Block[] = [];
  let open: { line: number; info: string; lines: string[] } | undefined;
  for (const [index, line] of page.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (fence && open) {
      blocks.push({ line: open.line, info: open.info, text: open.lines.join('\n') });
      open = undefined;
    } else if (fence) open = { line: index + 1, info: fence[1]!.trim(), lines: [] };
    else open?.lines.push(line);
  }
  return blocks;
}

/** Blocks marked `sh example`, in order. */
export function readExamples(page: string): Example[] {
  const blocks = readBlocks(page);
  return blocks.flatMap(({ line, info, text }, index) => {
    if (info !== 'sh example') return [];
    const next = blocks[index + 1];
    return [{ line, script: text, output: next?.info === 'json output' ? next.text : undefined }];
  });
}

/** Lines of shell blocks that ask a core node's API and are not marked, so that nobody runs them. */
export function findUnmarked(page: string): number[] {
  return readBlocks(page)
    .filter(({ info, text }) => /^(sh|bash|shell|console)$/.test(info) && /\/api\/v0\b/.test(text))
    .map(({ line }) => line);
}

const kindOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

/** Where what was printed lacks something that is shown, or has another type there. Values may differ. */
export function compareShape(shown: unknown, printed: unknown, at = 'output'): string[] {
  if (kindOf(shown) !== kindOf(printed))
    return [`${at} is shown as ${kindOf(shown)}, printed as ${kindOf(printed)}`];
  if (Array.isArray(shown)) {
    return shown.flatMap((one, index) => compareShape(one, (printed as unknown[])[index], `${at}[${index}]`));
  }
  if (kindOf(shown) !== 'object') return [];
  return Object.entries(shown as object).flatMap(([key, one]) =>
    compareShape(one, (printed as Record<string, unknown>)[key], `${at}.${key}`),
  );
}
