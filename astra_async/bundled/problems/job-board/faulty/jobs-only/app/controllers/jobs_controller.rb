class JobsController < ApplicationController
  before_action -> { require_role("employer") }, only: :create

  def index
    jobs = Job.search(params.permit(:title, :company, :location)).includes(:user).order(id: :desc)
    render json: jobs.map(&:as_answer)
  end

  def create
    job = current_user.jobs.new(params.permit(:title, :company, :location, :description, :salary))
    job.save ? render(json: job.as_answer, status: :created) : render_invalid(job.errors)
  end
end
