import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { succeedHere } from '../testing/here.ts';

const { listNodes, getPlan, explainPlacement } = SCHEDULER_EXAMPLES;
const HASH = String(explainPlacement!.params!.vm_hash);

test('what a scheduler says names instances as every other command does', async () => {
  const answers: Readonly<Record<string, unknown>> = {
    [SCHEDULER_API.listNodes.path]: listNodes!.answer,
    [SCHEDULER_API.getPlan.path]: getPlan!.answer,
    [SCHEDULER_API.explainPlacement.path.replace(':vm_hash', HASH)]: explainPlacement!.answer,
  };
  await using scheduler = await serving(({ url = '' }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answers[new URL(url, 'http://here').pathname]));
  });
  const say = (...args: string[]) => succeedHere({}, 'scheduler', ...args, '--scheduler', scheduler.url);
  const told = { nodes: await say('nodes'), plan: await say('plan'), explain: await say('explain', HASH) };
  for (const [command, text] of Object.entries(told)) {
    assert.match(text, /instance/i, command);
    assert.doesNotMatch(text, /machine/i, command);
  }
});
