/**
 * Does `work` for 0 to `count` - 1, at most `limit` at a time. The first error ends it, after what is under way has
 * ended.
 */
export async function inParallel(count: number, limit: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  let failure: { readonly error: unknown } | null = null;
  const lane = async () => {
    while (next < count && failure === null) {
      try {
        await work(next++);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, count) }, lane));
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}
