/** The test files whose tests have run in this process. */
export const ran: string[] = [];
