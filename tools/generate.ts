import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeApi as describeComputeApi } from '@skerry/compute';
import { describeApi } from '@skerry/core';
import { describeApi as describeCreditApi } from '@skerry/credit';
import { describeApi as describeGatewayApi } from '@skerry/gateway';
import { ERRORS } from '@skerry/protocol';
import { describeApi as describeSchedulerApi } from '@skerry/scheduler';
import { describeApi as describeStatusApi } from '@skerry/status';
import { fillTables } from '../bench/report/page.ts';
import { PAGE_FILE, readRuns } from '../bench/report/record.ts';
import { describeCompatibility } from './compat/page.ts';
import { compileContract } from './compile-contract.ts';
import { layOut } from './lay-out.ts';
import { describeNativeLayout } from './native-layout.ts';
import { fillDifferences } from './plane-differences.ts';
import { describeSettings } from './settings-page.ts';
import { ROOT } from './source.ts';

/** Without what JSON leaves out. */
const asDocument = (document: object) => `${layOut(JSON.parse(JSON.stringify(document)))}\n`;

/** Documents that are made from the code. `npm run generate` writes them; a test compares. */
export const GENERATED: Readonly<Record<string, () => Promise<string>>> = {
  'docs/errors.md': async () => {
    const rows = Object.entries(ERRORS).map(
      ([code, { httpStatus, kind, meaning }]) =>
        `| \`${code}\` | ${httpStatus} | ${kind.replace('_', ' ')} | ${meaning} |`,
    );
    return `# Errors

What does an error code mean, and should I try again? Every error body is \`{error, status: "error", code}\`, sometimes with \`details\`.
\`error\` is a sentence for people. \`code\` is for programs and never changes its meaning.

| kind | what to do |
|---|---|
| invalid | correct the request |
| unauthorized | sign the request, or sign it with the right key |
| refused | do not repeat the request; it is not permitted |
| missing | check the name or hash; it may not exist here yet |
| conflict | look at the current state, then decide |
| too large | send less |
| unavailable | try again later; wait as long as \`Retry-After\` says if it is present |
| internal | report it to the node's operator |

Routes that clients of deployed nodes call answer 422 where the table says 400, and to every refused message of the [network form](wire-forms.md).
[openapi.json](openapi.json) lists the statuses and codes of each route.

\`npm run generate\` writes this page from \`packages/protocol/src/errors.ts\`.

| code | HTTP status | kind | meaning |
|---|---|---|---|
${rows.join('\n')}
`;
  },
  'docs/settings.md': async () => describeSettings(),
  'docs/compatibility.md': async () => describeCompatibility(),
  [PAGE_FILE]: async () => fillTables(readFileSync(join(ROOT, PAGE_FILE), 'utf8'), readRuns()),
  'contracts/MessageArchive.json': async () => compileContract('MessageArchive'),
  'docs/gateway.md': async () => fillDifferences(readFileSync(join(ROOT, 'docs/gateway.md'), 'utf8')),
  'services/gateway/native/layout.h': async () => describeNativeLayout(),
  'docs/openapi.json': async () => asDocument(await describeApi()),
  'docs/openapi-status.json': async () => asDocument(await describeStatusApi()),
  'docs/openapi-scheduler.json': async () => asDocument(await describeSchedulerApi()),
  'docs/openapi-compute.json': async () => asDocument(await describeComputeApi()),
  'docs/openapi-credit.json': async () => asDocument(await describeCreditApi()),
  'docs/openapi-gateway.json': async () => asDocument(await describeGatewayApi()),
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
