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
  const charger = new Charger(network, store, records.progress.charged, now);
  const watcher = new Watcher(network, watchOf(config), now, log);
  const standing = new Standing(network, log);

  const reasons = () => [...(sales.length === 0 ? [NO_CHAIN] : []), ...standing.troubles, ...seller.troubles];
  const { enforcement } = config;
  const { address } = signer;
  const limits = rateLimitsOf(config);
  const app = await createApi({ sales, purchases, now, limits, address, enforcement, reasons }, log);
  const url = await listen(app, config.host, config.port);
  log.info({ address: signer.address, core: config.coreUrl }, 'the credit service signs with this address');
  if (sales.length === 0) log.info(NO_CHAIN);

  const loop = (name: string, intervalMs: number, body: () => Promise<void>) =>
    runLoop({ name, intervalMs, signal, log }, body);
  const whenTrusted = (body: () => Promise<void>) => async () => {
    if (await standing.check()) await body();
  };
  const tasks = [
    loop('core', config.chargeIntervalSeconds * 1000, async () => {
      // The loops that need the core node log what fails.
      await standing.check().catch(() => {});
    }),
    sales.length > 0 && loop('sales', config.pollIntervalMs, () => seller.runRound()),
    config.charging &&
      loop(
        'charges',
        config.chargeIntervalSeconds * 1000,
        whenTrusted(() => charger.runRound()),
      ),
    loop(
      'balances',
      config.watchIntervalSeconds * 1000,
      whenTrusted(() => watcher.runRound()),
    ),
  ];
  return {
    urls: [url],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([app.close(), ...tasks]);
    },
  };
}
