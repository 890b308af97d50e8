import { MetadataService } from '@aws-sdk/ec2-metadata-service';

/**
 * Runs in a guest's network. Prints, as JSON by path, everything that AWS's own client finds below
 * `/latest/`, with session tokens.
 */

const service = new MetadataService({ ec2MetadataV1Disabled: true, retries: 0 });
const found: Record<string, string> = {};

async function crawl(folder: string): Promise<void> {
  const listing = await service.request(`/latest/${folder}/`, {});
  for (const line of listing.split('\n').filter((text) => text !== '')) {
    const key = /^(\d+)=/.exec(line)?.[1];
    const path = `${folder}/${key ?? line.replace(/\/$/, '')}`;
    if (key !== undefined || line.endsWith('/')) await crawl(path);
    else found[path] = await service.request(`/latest/${path}`, {});
  }
}

await crawl('meta-data');
await crawl('dynamic');
found['user-data'] = await service.request('/latest/user-data', {});
process.stdout.write(JSON.stringify(found));
