/** The test files whose tests have run in this process. */
export const ran: string[] = [];

/** As a product that a test runs in its own process might. */
export const leave = () => process.exit(0);
