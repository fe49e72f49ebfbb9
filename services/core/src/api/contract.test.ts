import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { listUnanswered } from '@skerry/kit/testing';
import { CORE_API } from '@skerry/protocol/api/core/index';
import { NETWORK_SERVICES } from '@skerry/protocol/api/core/node';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import type { Api } from '@skerry/protocol/api/operation';
import { describeApi } from '../describe.ts';
import { type Answer, createAnswerChecker, refusalOf } from '../testing/contract/answers.ts';
import type { Call, Case } from '../testing/contract/case.ts';
import { CASES } from '../testing/contract/cases.ts';
import { QUIET_CHAIN } from '../testing/contract/indexer.ts';
import { operationsOf } from '../testing/contract/operations.ts';
import { createTestCore, type TestCore } from '../testing/core.ts';
import { canRunPrograms, TestRunner } from '../testing/runner.ts';

/** Every operation of the document is called on a real core node, and answers as the document says and its example shows. */

const document = await describeApi();
const contract: Api = CORE_API;
const described = operationsOf(document);
const check = createAnswerChecker(document);
const operations = described.map(({ name }) => name);
const isSuccess = ({ expects }: Case) => typeof expects === 'number' && expects < 400;

/** Whether an operation has parameters in its query. */
const isAsked = (operation: string) =>
  described.find(({ name }) => name === operation)!.parameters.some((one) => one.in === 'query');

/** WebSockets are followed elsewhere (sockets.test.ts): here they are refused. */
const SOCKETS = described.filter(({ responses }) => '101' in responses).map(({ name }) => name);
/** Where sandboxes cannot be made, no compute node runs programs: every answer there is a refusal. */
const NEVER_SUCCEED = [...SOCKETS, ...(canRunPrograms ? [] : ['POST /api/v0/run/{program_hash}'])];

/** `/api/v0/messages/{hash}` as a pattern of the paths that are meant. */
const patternOf = (path: string) =>
  new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{[^}]+\}/g, '[^/?]+')}(\\?|$)`);

/** Services of its network, as its operator would name them. */
const SERVICES = Object.fromEntries(NETWORK_SERVICES.map((name) => [name, `https://${name}.example.org`]));

let shared: TestCore;
/** It has lost its database after the calls to it were made. */
let dark: TestCore;
const madeBefore = new Map<Case, Call>();
const stack = new AsyncDisposableStack();
before(async () => {
  shared = stack.use(await createTestCore({ indexer: QUIET_CHAIN, settings: { services: SERVICES } }));
  if (canRunPrograms) stack.use(await TestRunner.start(shared));
  dark = stack.use(await createTestCore());
  for (const one of Object.values(CASES).flat())
    if (one.on === 'dark') madeBefore.set(one, await one.makeCall(dark));
  await dark.loseDatabase();
});
after(() => stack.disposeAsync());

async function run(operation: string, one: Case, core: TestCore): Promise<Answer> {
  const [method = '', path = ''] = operation.split(' ');
  const call = madeBefore.get(one) ?? (await one.makeCall(core));
  assert.match(call.path, patternOf(path), 'the case calls another operation');
  const answer = await core.api.inject({
    method: method as 'GET',
    url: call.path,
    headers: { ...call.headers },
    ...(call.body === undefined ? {} : { payload: call.body }),
    ...(call.remoteAddress === undefined ? {} : { remoteAddress: call.remoteAddress }),
  });
  const got = answer.statusCode < 400 ? answer.statusCode : refusalOf(answer);
  assert.equal(got, one.expects, answer.payload.slice(0, 300));
  check(operation, answer);
  return answer;
}

/** What the example of an operation shows, and a real node does not answer. */
function listUnshown(operation: string, answered: readonly Answer[]): string[] {
  const { operationId } = described.find(({ name }) => name === operation)!;
  const one = contract[operationId];
  return one ? listUnanswered(one, CORE_EXAMPLES[operationId], answered) : [];
}

describe('the API answers as its document says', () => {
  const called = new Set<string>();
  const refused = new Set<string>();

  for (const operation of operations) {
    test(operation, async () => {
      const cases = CASES[operation] ?? [];
      const succeeds = cases.some(isSuccess) || NEVER_SUCCEED.includes(operation);
      assert.ok(succeeds, 'there is no case of a success: add one in contract/suite');
      assert.ok(!cases.every(isSuccess), 'there is no case of an error: add one in contract/suite');
      const answered: Answer[] = [];
      for (const one of cases) {
        if (one.on === 'own') {
          await using core = await createTestCore();
          answered.push(await run(operation, one, core));
        } else answered.push(await run(operation, one, one.on === 'dark' ? dark : shared));
        called.add(operation);
        if (!isSuccess(one)) refused.add(operation);
      }
      assert.deepEqual(listUnshown(operation, answered), [], 'the example shows what is not answered');
    });
  }

  for (const operation of operations.filter(isAsked)) {
    test(`${operation} refuses a parameter that it does not know`, async () => {
      const cases = CASES[operation]!;
      const { path } = await (
        cases.find((one) => isSuccess(one) && one.on === 'shared') ?? cases[0]!
      ).makeCall(shared);
      const url = `${path}${path.includes('?') ? '&' : '?'}colour=red`;
      assert.equal(refusalOf(await shared.api.inject({ url })), 'UNKNOWN_FIELD');
    });
  }

  test('every operation is called, and there are no cases of operations that are not documented', (t) => {
    t.diagnostic(
      `operations documented ${operations.length}, called ${called.size}, with an error case ${refused.size}`,
    );
    assert.deepEqual([called.size, refused.size], [operations.length, operations.length]);
    assert.deepEqual(
      Object.keys(CASES).filter((name) => !operations.includes(name)),
      [],
    );
  });
});
