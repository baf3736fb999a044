// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/registers: reading and writing at an offset of the file is an access to the 32-bit register at that bus address.
 * Mapped, it is memory that devices reach; the parameter "memory" is its bus address.
 * For tests/kernel/fuzz.py. Part of no product.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#define ORDER 6

static unsigned long memory;
module_param(memory, ulong, 0444);
static struct page *pages;

static ssize_t registers_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	void __iomem *mapped;
	u32 value;

	if (count != sizeof(value) || *at % sizeof(value))
		return -EINVAL;
	mapped = ioremap(*at, sizeof(value));
	if (!mapped)
		return -ENXIO;
	value = readl(mapped);
	iounmap(mapped);
	return copy_to_user(to, &value, sizeof(value)) ? -EFAULT : sizeof(value);
}

static ssize_t registers_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	void __iomem *mapped;
	u32 value;

	if (count != sizeof(value) || *at % sizeof(value))
		return -EINVAL;
	if (copy_from_user(&value, from, sizeof(value)))
		return -EFAULT;
	mapped = ioremap(*at, sizeof(value));
	if (!mapped)
		return -ENXIO;
	writel(value, mapped);
	iounmap(mapped);
	return sizeof(value);
}

static int registers_mmap(struct file *file, struct vm_area_struct *area)
{
	const unsigned long size = area->vm_end - area->vm_start;

	if (area->vm_pgoff || size > PAGE_SIZE << ORDER)
		return -EINVAL;
	return remap_pfn_range(area, area->vm_start, page_to_pfn(pages), size, area->vm_page_prot);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = registers_read,
	.write = registers_write,
	.mmap = registers_mmap,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "registers",
	.fops = &operations,
};

static int __init registers_init(void)
{
	pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, ORDER);
	if (!pages)
		return -ENOMEM;
	memory = page_to_phys(pages);
	return misc_register(&device);
}
module_init(registers_init);
MODULE_DESCRIPTION("Registers of a bus and memory that devices reach, for tests");
MODULE_LICENSE("GPL");
