class JobsController < ApplicationController
  before_action :require_employer, only: :create

  def index
    jobs = Job.search(params.permit(:title, :company, :location)).includes(:user).order(id: :desc)
    render json: jobs.map(&:as_answer)
  end

  def show
    render json: Job.find(params[:id]).as_answer
  end

  def create
    job = current_user.jobs.new(params.permit(:title, :company, :location, :description, :salary))
    if job.save
      render json: job.as_answer, status: :created
    else
      render_invalid(job.errors)
    end
  end
end
