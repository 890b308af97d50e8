/** Formats in which an image file holds a disk. */
export const CONTAINER_FORMATS = ['qcow2', 'vmdk', 'vdi', 'vhdx'] as const;
export type ContainerFormat = (typeof CONTAINER_FORMATS)[number];
/**
 * Formats that an operator may give. A compressed file has the format of its content, such as
 * `raw`.
 */
export const IMAGE_FORMATS = ['raw', ...CONTAINER_FORMATS] as const;
export type ImageFormatName = (typeof IMAGE_FORMATS)[number];
