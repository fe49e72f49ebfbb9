import { test } from 'node:test';
import { startBrowser } from '../testing/browser.ts';
import { lookAndCatchLies } from '../testing/console-tour.ts';
import { createOwner, letGo, playFirstHours, untilPlaced } from '../testing/first-hours.ts';

test('every view of the console in each width and theme, and everything that a core node may change', async () => {
  await using stack = new AsyncDisposableStack();
  const hours = await playFirstHours(stack);
  const owner = await createOwner(hours);
  const browser = stack.use(await startBrowser());
  const tour = {
    core: hours.first,
    nodeId: hours.published.scores.crn[0].node_id as string,
    machineId: owner.machineId,
    ipv6: await untilPlaced(hours, owner),
    owner: owner.address,
  };
  await lookAndCatchLies(browser, tour, true);
  await letGo(hours, owner);
});
