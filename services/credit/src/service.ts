import { join } from 'node:path';
import { CoreClient, createSigner } from '@skerry/client';
import {
  checkPort,
  type Host,
  listen,
  loadOrCreateKeyFile,
  type RunningService,
  rateLimitsOf,
  runLoop,
} from '@skerry/kit';
import { Charger } from './charger.ts';
import type { CreditConfig } from './config.ts';
import { createApi } from './http/routes.ts';
import { Network } from './network.ts';
import { PurchaseStore } from './purchase-store.ts';
import { Purchases } from './purchases.ts';
import { loadSales } from './sales.ts';
import { Seller } from './seller.ts';
import { Standing } from './standing.ts';
import { Watcher } from './watcher.ts';

const HOUR_SECONDS = 3_600;
const NO_CHAIN = 'no chain is configured: nothing can be bought (SKERRY_CREDIT_SALES_FILE)';

const watchOf = ({ lowHours, graceHours, enforcement }: CreditConfig) => ({
  lowSeconds: lowHours * HOUR_SECONDS,
  graceSeconds: graceHours * HOUR_SECONDS,
  enforcement,
});

interface LoopParts {
  readonly standing: Standing;
  readonly seller: Seller;
  readonly charger: Charger;
  readonly watcher: Watcher;
  readonly signal: AbortSignal;
  readonly log: Host['log'];
}

/** What the service does again and again. Each ends with the signal. */
function startLoops(config: CreditConfig, parts: LoopParts): Promise<void>[] {
  const { standing, seller, charger, watcher, signal, log } = parts;
  const loop = (name: string, intervalSeconds: number, body: () => Promise<void>) =>
    runLoop({ name, intervalMs: intervalSeconds * 1000, signal, log }, body);
  const whenTrusted = (body: () => Promise<void>) => async () => {
    if (await standing.check()) await body();
  };
  const runCharges = whenTrusted(() => charger.runRound());
  const runBalances = whenTrusted(() => watcher.runRound());
  // The loops that need the core node log what fails.
  const look = async () => void (await standing.check().catch(() => {}));
  return [
    loop('core', config.chargeIntervalSeconds, look),
    loop('balances', config.watchIntervalSeconds, runBalances),
    ...(config.charging ? [loop('charges', config.chargeIntervalSeconds, runCharges)] : []),
    ...(config.salesFile === undefined
      ? []
      : [loop('sales', config.pollIntervalMs / 1000, () => seller.runRound())]),
  ];
}

/** The whole credit service. Known to the network by the key in `<dataDir>/key`. */
export async function startCredit(config: CreditConfig, host: Host): Promise<RunningService> {
  const { log } = host;
  const sales = await loadSales(config.salesFile);
  await checkPort(config.host, config.port);
  const signer = createSigner(await loadOrCreateKeyFile(join(config.dataDir, 'key')));
  const { store, records } = await PurchaseStore.open(config.dataDir, log);
  const purchases = new Purchases(records.purchases, records.settlements);
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const network = new Network(new CoreClient({ url: config.coreUrl, signer, signal }), signal);
  const now = Date.now;
  const seller = new Seller({
    ...{ sales, network, store, purchases, now, signal, log },
    scanned: records.progress.scanned,
  });
  const charger = new Charger(network, store, records.progress.charged, now, log);
  const watcher = new Watcher({
    ...{ network, store, now, log },
    settings: watchOf(config),
    warned: records.progress.warned,
    uptime: () => performance.now(),
  });
  const standing = new Standing(network, log);

  const reasons = () => [...(sales.length === 0 ? [NO_CHAIN] : []), ...standing.troubles, ...seller.troubles];
  const { enforcement } = config;
  const { address } = signer;
  const limits = rateLimitsOf(config);
  const app = await createApi({ sales, purchases, now, limits, address, enforcement, reasons }, log);
  const url = await listen(app, config.host, config.port);
  log.info({ address: signer.address, core: config.coreUrl }, 'the credit service signs with this address');
  if (sales.length === 0) log.info(NO_CHAIN);

  const tasks = startLoops(config, { standing, seller, charger, watcher, signal, log });
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([app.close(), ...tasks]);
    },
  };
}
