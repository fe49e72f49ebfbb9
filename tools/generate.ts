import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeApi } from '@skerry/core';
import { ERRORS } from '@skerry/protocol';
import { describeApi as describeSchedulerApi } from '@skerry/scheduler';
import { describeApi as describeStatusApi } from '@skerry/status';
import { compileContract } from './compile-contract.ts';
import { ROOT } from './source.ts';

/** Documents that are made from the code. `npm run generate` writes them; a test compares. */
export const GENERATED: Readonly<Record<string, () => Promise<string>>> = {
  'docs/errors.md': async () => {
    const rows = Object.entries(ERRORS).map(
      ([code, { httpStatus, kind, meaning }]) =>
        `| \`${code}\` | ${httpStatus} | ${kind.replace('_', ' ')} | ${meaning} |`,
    );
    return `# Errors

Every error body is \`{error, status: "error", code}\`, sometimes with \`details\`. \`error\` is a sentence for people, \`code\` is for programs and never changes its meaning.
This page is generated from \`packages/protocol/src/errors.ts\` by \`npm run generate\`.

| code | HTTP status | kind | meaning |
|---|---|---|---|
${rows.join('\n')}
`;
  },
  'contracts/MessageArchive.json': async () => compileContract('MessageArchive'),
  'docs/openapi.json': async () => `${JSON.stringify(await describeApi(), null, 2)}\n`,
  'docs/openapi-status.json': async () => `${JSON.stringify(await describeStatusApi(), null, 2)}\n`,
  'docs/openapi-scheduler.json': async () => `${JSON.stringify(await describeSchedulerApi(), null, 2)}\n`,
};

export function readGenerated(path: string): string | undefined {
  try {
    return readFileSync(join(ROOT, path), 'utf8');
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  for (const [path, make] of Object.entries(GENERATED)) {
    writeFileSync(join(ROOT, path), await make());
    console.log(`wrote ${path}`);
  }
}
