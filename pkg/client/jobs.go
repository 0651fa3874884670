package client

import (
	"context"
	"iter"

	"github.com/weir-project/weir/pkg/messages"
)

// StartJob starts a job on a knowledge base, or estimates one. JOB_CONFLICT says that one is under way.
func (c *Client) StartJob(ctx context.Context, in messages.StartJob, opts ...CallOption) (messages.JobInfo, error) {
	return ask[messages.JobInfo](ctx, c, messages.TenantScope, messages.OpJobStart, in, opts)
}

// ListJobs returns a page of jobs, newest first.
func (c *Client) ListJobs(ctx context.Context, in messages.ListJobs, opts ...CallOption) (messages.JobList, error) {
	return ask[messages.JobList](ctx, c, messages.TenantScope, messages.OpJobList, in, opts)
}

// Jobs goes through the jobs that in asks for, from its page on. An error ends it.
func (c *Client) Jobs(ctx context.Context, in messages.ListJobs) iter.Seq2[messages.JobInfo, error] {
	first := in.NextToken
	return pages(func(token string) ([]messages.JobInfo, string, error) {
		in.NextToken = from(first, token)
		list, err := c.ListJobs(ctx, in)
		return list.Jobs, list.NextToken, err
	})
}

// Job describes one.
func (c *Client) Job(ctx context.Context, id int64, opts ...CallOption) (messages.JobInfo, error) {
	return c.job(ctx, messages.OpJobGet, messages.JobRef{ID: id}, opts)
}

// PauseJob lets it begin no more documents.
func (c *Client) PauseJob(ctx context.Context, id int64, opts ...CallOption) (messages.JobInfo, error) {
	return c.job(ctx, messages.OpJobPause, messages.JobRef{ID: id}, opts)
}

// ResumeJob lets a job go on.
func (c *Client) ResumeJob(ctx context.Context, in messages.ResumeJob, opts ...CallOption) (messages.JobInfo, error) {
	return c.job(ctx, messages.OpJobResume, in, opts)
}

// CancelJob gives it up.
func (c *Client) CancelJob(ctx context.Context, id int64, opts ...CallOption) (messages.JobInfo, error) {
	return c.job(ctx, messages.OpJobCancel, messages.JobRef{ID: id}, opts)
}

// ApproveJob lets it make its generation the live one, whatever its gate found.
func (c *Client) ApproveJob(ctx context.Context, in messages.ApproveJob, opts ...CallOption) (messages.JobInfo, error) {
	return c.job(ctx, messages.OpJobApprove, in, opts)
}

// RollbackJob makes the generation live again that was so before.
func (c *Client) RollbackJob(ctx context.Context, id int64, opts ...CallOption) (messages.JobInfo, error) {
	return c.job(ctx, messages.OpJobRollback, messages.JobRef{ID: id}, opts)
}

func (c *Client) job(ctx context.Context, op string, in any, opts []CallOption) (messages.JobInfo, error) {
	return ask[messages.JobInfo](ctx, c, messages.TenantScope, op, in, opts)
}
